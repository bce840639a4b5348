import { describe, expect, it } from '@jest/globals';
import { Lookups } from './lookups.js';

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

  it('continue after a load that failed', async () => {
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
