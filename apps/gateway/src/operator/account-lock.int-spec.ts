import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { withAccountLock } from './account-lock.js';

let db: FreshDatabase;
beforeAll(async () => (db = await freshDatabase(schema)));
afterAll(() => db.drop());

/** Holds the lock of an account until `end` is called. */
async function holder(id: string) {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const result = withAccountLock(db.database, id, () => {
    begun.resolve();
    return ended.promise;
  });
  result.catch(() => {});
  await begun.promise;
  return { result, end: ended.resolve };
}

const tryLock = (id: string) => withAccountLock(db.database, id, async () => 'begun');

it('refuses a second command for an account at once, until the first one has ended', async () => {
  const first = await holder('u_1');
  await expect(tryLock('u_1')).rejects.toMatchObject({ code: 'conflict', message: 'another command for this account is in progress' });
  expect(await tryLock('u_2')).toBe('begun');
  first.end();
  await first.result;
  expect(await tryLock('u_1')).toBe('begun');
});

it('releases the lock when the connection ends, and fails the command that had it', async () => {
  const first = await holder('u_1');
  await db.database.query(
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks JOIN pg_database ON oid = database WHERE locktype = 'advisory' AND datname = current_database()",
  );
  expect(await tryLock('u_1')).toBe('begun');
  await expect(first.result).rejects.toMatchObject({ code: 'unavailable' });
});
