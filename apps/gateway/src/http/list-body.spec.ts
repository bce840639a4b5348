import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { fieldSelection } from './fields.js';
import { listBody } from './list-body.js';

async function* chunks(...sizes: number[]): AsyncGenerator<object[]> {
  let id = 0;
  for (const size of sizes) yield Array.from({ length: size }, () => ({ id: id++, name: 'x' }));
}
const ids = (count: number) => ({ data: Array.from({ length: count }, (_, id) => ({ id })) });

describe('a list', () => {
  it.each([
    ['nothing', [0], 0],
    ['one chunk', [3], 3],
    ['several chunks', [3, 3, 1], 7],
    ['chunks of which the last one is empty', [3, 0], 3],
    ['chunks of which the first one is empty', [0, 2, 0, 1], 3],
  ])('a list of %s has all items with the selected fields', async (_, sizes, count) => {
    const body = await listBody(chunks(...sizes), fieldSelection('id', undefined));
    expect(body instanceof Readable).toBe(sizes.length > 1);
    expect(JSON.parse(typeof body === 'string' ? body : await text(body))).toEqual(ids(count));
  });

  it('a list that cannot be read to its end has no end', async () => {
    async function* broken(): AsyncGenerator<object[]> {
      yield* chunks(2, 2);
      throw new Error('no reply');
    }
    const body = await listBody(broken(), null);
    await expect(text(body as Readable)).rejects.toThrow('no reply');
  });

  it('keeps at most one chunk while its client does not read', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const made: WeakRef<object>[] = [];
    async function* large(): AsyncGenerator<object[]> {
      for (let n = 0; n < 9; n++) {
        const chunk = [{ text: 'x'.repeat(1 << 17) }];
        made.push(new WeakRef(chunk));
        yield chunk;
      }
    }
    const body = (await listBody(large(), null)) as Readable;
    // as far as a stream reads ahead
    body.read(0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    body.read();
    await new Promise((resolve) => setTimeout(resolve, 50));
    collect();
    expect(made.filter((each) => each.deref()).length).toBeLessThanOrEqual(1);
  });
});
