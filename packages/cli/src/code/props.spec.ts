import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { SluiceError } from '@sluice/client';
import { propsOf, sendProps } from './props.js';

it('reads props as JSON where they are JSON, as text otherwise, and from files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-props-'));
  try {
    writeFileSync(join(folder, 'token'), 'a=b\n');
    const pairs = ['text=hello world', 'n=17', 'list=[1]', 'quoted="17"', 'empty=', 'equals=a=b', `file=@${join(folder, 'token')}`];
    expect(propsOf(pairs)).toEqual({ text: 'hello world', n: 17, list: [1], quoted: '17', empty: '', equals: 'a=b', file: 'a=b' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('keeps text as it is where the type of the prop is known', () => {
  expect(propsOf(['a=17', 'b="17"', 'c=17'], { a: 'string', b: 'string', c: 'integer' })).toEqual({ a: '17', b: '17', c: 17 });
});

it.each(['text', '=1'])('refuses the prop %j', (pair) => {
  expect(() => propsOf([pair])).toThrow('a prop is written name=value');
});

it('sends a value as text when Sluice says that it must be a string', async () => {
  const sent: object[] = [];
  const send = async (props: Record<string, unknown>) => {
    sent.push(props);
    if (typeof props.text !== 'string') throw new SluiceError(400, { detail: 'configured_props.text must be a string' });
    return 'done';
  };
  expect(await sendProps(['text=17', 'n=17'], {}, send)).toBe('done');
  expect(sent).toEqual([
    { text: 17, n: 17 },
    { text: '17', n: 17 },
  ]);
  // what was not given cannot be corrected
  await expect(sendProps(['n=1'], {}, send)).rejects.toThrow('must be a string');
});

it('names the props of a component of the registry if it has none of a given name', async () => {
  const send = () => Promise.reject(new SluiceError(400, { detail: 'configured_props.bodyonly is not a prop of this component' }));
  await expect(sendProps(['bodyonly=true'], { http: '$.interface.http', bodyOnly: 'boolean' }, send)).rejects.toThrow(
    'configured_props.bodyonly is not a prop of this component; its props are http, bodyOnly',
  );
});
