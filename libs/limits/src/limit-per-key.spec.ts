import { describe, expect, it } from '@jest/globals';
import { TooManyRequests } from '#contracts';
import { LimitPerKey } from './limit-per-key.js';

it('refuses a key that has reached the limit, and no other', () => {
  const limit = new LimitPerKey<string>(2);
  expect([limit.acquire('a'), limit.acquire('a')]).toEqual([expect.any(Function), expect.any(Function)]);
  expect(limit.acquire('a')).toBeUndefined();
  expect(limit.acquire('b')).toBeDefined();
});

it('admits one again for each one that is given back, however often', () => {
  const limit = new LimitPerKey<string>(2);
  const release = limit.acquire('a')!;
  limit.acquire('a');
  release();
  release();
  expect(limit.acquire('a')).toBeDefined();
  expect(limit.acquire('a')).toBeUndefined();
});

it('refuses every key when all of them together have reached the total', () => {
  const limit = new LimitPerKey<string>(1, 2);
  const release = limit.acquire('a')!;
  limit.acquire('b');
  expect(limit.acquire('c')).toBeUndefined();
  release();
  expect(limit.acquire('c')).toBeDefined();
});

/** How many each of these keys obtains, one after the other, if it takes as many as possible. */
const obtained = (limit: LimitPerKey<number>, keys: number): number[] =>
  Array.from({ length: keys }, (_, key) => {
    let count = 0;
    while (limit.acquire(key)) count += 1;
    return count;
  });

describe('keys that take as many as possible, one after the other,', () => {
  it.each([
    { each: 8, total: 32, counts: [8, 8, 6, 3, 2, 1, 1, 1, 1, 1, 0] },
    { each: 4, total: 32, counts: [4, 4, 4, 4, 4, 4, 2, 1, 1, 1, 1, 1, 1, 0] },
    { each: 4, total: 16, counts: [4, 4, 3, 2, 1, 1, 1, 0] },
    { each: 4, total: Infinity, counts: [4, 4, 4, 4, 4, 4, 4, 4] },
  ])('obtain $counts if the limit is $each of $total', ({ each, total, counts }) => {
    expect(obtained(new LimitPerKey(each, total), counts.length)).toEqual(counts);
  });

  it('leave one for each further key until an eighth of the total has been given to such keys', () => {
    const limit = new LimitPerKey<number>(128, 1024);
    const counts = obtained(limit, 200);
    expect(counts.slice(0, 10)).toEqual([128, 128, 128, 128, 128, 128, 64, 32, 16, 8]);
    expect(counts.filter((count) => count === 1).length).toBeGreaterThanOrEqual(128);
    expect(counts.reduce((sum, count) => sum + count)).toBe(1024);
  });
});

it('gives what one key returns to another that has fewer', () => {
  const limit = new LimitPerKey<string>(8, 32);
  const take = (key: string) => Array.from({ length: 8 }, () => limit.acquire(key));
  const [first] = take('a');
  const held = ['b', 'c'].map((key) => take(key).filter(Boolean).length);
  expect(held).toEqual([8, 6]);
  first!();
  expect(limit.acquire('a')).toBeUndefined();
  expect(limit.acquire('c')).toBeDefined();
});

it('counts work until it has ended, also by an error', async () => {
  const limit = new LimitPerKey<string>(1);
  const { promise, reject } = Promise.withResolvers<void>();
  const failing = limit.run('a', 'no more', () => promise);
  await expect(limit.run('a', 'no more', async () => 1)).rejects.toEqual(new TooManyRequests('no more'));
  reject(new Error('failed'));
  await expect(failing).rejects.toThrow('failed');
  expect(await limit.run('a', 'no more', async () => 1)).toBe(1);
});
