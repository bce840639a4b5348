import { expect, it } from '@jest/globals';
import { SumPerKey } from './sum-per-key.js';

it('adds up what each key has in use, and all of them together', () => {
  const sums = new SumPerKey<string>();
  expect([sums.add('a', 3), sums.add('b', 1), sums.add('a', -1)]).toEqual([3, 1, 2]);
  expect([sums.of('a'), sums.of('b'), sums.of('c'), sums.total]).toEqual([2, 1, 0, 3]);
});

it('counts only keys that have something for an equal share', () => {
  const sums = new SumPerKey<string>();
  sums.add('gone', 5);
  sums.add('gone', -5);
  sums.add('a', 6);
  sums.add('b', 5);
  expect(['a', 'b'].map((key) => sums.exceedsShare(key, 10))).toEqual([true, false]);
  expect(sums.exceedsShare('a', 11)).toBe(false);
});
