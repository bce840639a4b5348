import { expect, it } from '@jest/globals';
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
  const limit = new LimitPerKey<string>(2, 3);
  const release = limit.acquire('a')!;
  for (const key of ['a', 'b']) limit.acquire(key);
  expect(limit.acquire('c')).toBeUndefined();
  release();
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
