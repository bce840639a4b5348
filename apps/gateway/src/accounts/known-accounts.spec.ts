import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { newId } from '#contracts';
import type { OpenedAccount } from './account.entity.js';
import { KnownAccounts, untilForgotten } from './known-accounts.js';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] }));
afterEach(() => void jest.useRealTimers());

const account = { id: newId('user') } as OpenedAccount;

it('an account is read once however many requests there are, and again after 0.2 s', async () => {
  const read = jest.fn(async (hashes: string[]) => new Map(hashes.map((hash) => [hash, account])));
  const accounts = new KnownAccounts(read);
  for (let n = 0; n < 10; n++) expect(await accounts.get('a')).toEqual({ ...account, until: performance.now() + 200 });
  expect(await accounts.get('b')).toMatchObject(account);
  expect(read.mock.calls).toEqual([[['a']], [['b']]]);
  jest.advanceTimersByTime(201);
  await accounts.get('a');
  expect(read).toHaveBeenCalledTimes(3);
});

it('a key that does not exist is looked up for each request, because it may have been created', async () => {
  const read = jest.fn(async () => new Map<string, OpenedAccount>());
  const accounts = new KnownAccounts(read);
  for (let n = 0; n < 3; n++) expect(await accounts.get('a')).toBeUndefined();
  expect(read).toHaveBeenCalledTimes(3);
});

it('an account is forgotten when untilForgotten resolves, however long its lookup took', async () => {
  const rows = new Map([['a', account]]);
  const slow = Promise.withResolvers<void>();
  const accounts = new KnownAccounts(async (hashes) => {
    const found = new Map([...rows].filter(([hash]) => hashes.includes(hash)));
    if (rows.size > 0) await slow.promise;
    return found;
  });
  const begun = accounts.get('a');
  await new Promise((resolve) => setImmediate(resolve));
  rows.clear();
  const forgotten = untilForgotten();
  jest.advanceTimersByTime(150);
  slow.resolve();
  // and by then it has to be read again
  expect((await begun)?.until).toBe(performance.now() + 50);
  jest.advanceTimersByTime(150);
  await forgotten;
  expect(await accounts.get('a')).toBeUndefined();
});
