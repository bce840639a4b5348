import { describe, expect, it } from '@jest/globals';
import { JointWrites, Lookups } from './joint-statements.js';

/** Lookups whose loads the test ends. */
function controlled() {
  const loads: { keys: string[]; end(found?: Map<string, string>): void; fail(error: Error): void }[] = [];
  let begun = Promise.withResolvers<void>();
  const lookups = new Lookups<string, string>((keys) => {
    const { promise, resolve, reject } = Promise.withResolvers<Map<string, string>>();
    loads.push({ keys, end: (found = new Map(keys.map((key) => [key, key.toUpperCase()]))) => resolve(found), fail: reject });
    begun.resolve();
    begun = Promise.withResolvers();
    return promise;
  });
  return { lookups, loads, begun: () => begun.promise };
}

describe('lookups', () => {
  it('load keys that are requested at the same time together, each key once', async () => {
    const { lookups, loads, begun } = controlled();
    const first = begun();
    const values = Promise.all(['a', 'b', 'a'].map((key) => lookups.get(key)));
    await first;
    expect(loads.map(({ keys }) => keys)).toEqual([['a', 'b']]);
    loads[0]?.end(new Map([['a', 'A']]));
    expect(await values).toEqual(['A', undefined, 'A']);
  });

  it('load a key again for a caller that asks while it is loaded, because it may have changed', async () => {
    const { lookups, loads, begun } = controlled();
    const first = begun();
    const early = lookups.get('a');
    await first;
    const second = begun();
    const late = Promise.all(['a', 'b'].map((key) => lookups.get(key)));
    loads[0]?.end(new Map([['a', 'old']]));
    expect(await early).toBe('old');
    await second;
    expect(loads[1]?.keys).toEqual(['a', 'b']);
    loads[1]?.end();
    expect(await late).toEqual(['A', 'B']);
  });

  it('look up the next keys after a lookup that failed', async () => {
    const { lookups, loads, begun } = controlled();
    const first = begun();
    const failed = lookups.get('a');
    await first;
    loads[0]?.fail(new Error('away'));
    await expect(failed).rejects.toThrow('away');
    const second = begun();
    const again = lookups.get('a');
    await second;
    loads[1]?.end();
    expect(await again).toBe('A');
  });
});

const refused = () => Object.assign(new Error('invalid byte sequence'), { code: '22021' });
const failed = () => new Error('Connection terminated');

/** Writes that take one turn of the event loop, and refuse or fail as the test decides. */
function recorded({ most = 10, error = (_: string[]): Error | undefined => undefined } = {}) {
  const writes: string[][] = [];
  const joint = new JointWrites<string, string>(async (items) => {
    writes.push(items);
    await new Promise((resolve) => setImmediate(resolve));
    const thrown = error(items);
    if (thrown) throw thrown;
    return items.map((item) => item.toUpperCase());
  }, most);
  return { joint, writes };
}

describe('joint writes', () => {
  it('write what comes at the same time together, and return to each caller its own result', async () => {
    const { joint, writes } = recorded();
    expect(await Promise.all(['a', 'b', 'c'].map((item) => joint.add(item)))).toEqual(['A', 'B', 'C']);
    expect(writes).toEqual([['a', 'b', 'c']]);
  });

  it('write one after the other, each at most as many items as allowed, in the order in which they came', async () => {
    const { joint, writes } = recorded({ most: 2 });
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((item) => joint.add(item)));
    expect(writes).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    await joint.add('f');
    expect(writes.at(-1)).toEqual(['f']);
  });

  it('write each item by itself when the database refuses the data of one, so that only its caller gets the error', async () => {
    const { joint, writes } = recorded({ error: (items) => (items.includes('bad') ? refused() : undefined) });
    const results = await Promise.allSettled(['a', 'bad', 'c'].map((item) => joint.add(item)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(writes).toEqual([['a', 'bad', 'c'], ['a'], ['bad'], ['c']]);
  });

  it('pass any other error to all callers of the write, and continue with the next', async () => {
    const { joint, writes } = recorded({ most: 2, error: (items) => (items.includes('a') ? failed() : undefined) });
    const results = await Promise.allSettled(['a', 'b', 'c'].map((item) => joint.add(item)));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(writes).toEqual([['a', 'b'], ['c']]);
  });
});
