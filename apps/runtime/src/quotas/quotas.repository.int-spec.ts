import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { UserId } from '#contracts';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { QuotasRepository } from './quotas.repository.js';

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase(schema);
});
afterAll(() => db.drop());

it('stores the report of an exceeded quota once a day for each source, in the outbox', async () => {
  const quotas = new QuotasRepository(db.database);
  const notify = (source: string) =>
    quotas.addNotice(source, { topic: 'events', key: source, headers: { a: 'b' }, value: 'over quota', account: 'u_1' });
  expect((await Promise.all(['dc_1', 'dc_1', 'dc_2'].map(notify))).toSorted()).toEqual([false, true, true]);
  expect(await notify('dc_1')).toBe(false);
  const { rows } = await db.database.query('SELECT topic, key, headers, value FROM outbox ORDER BY key');
  const report = { topic: 'events', headers: { a: 'b' }, value: Buffer.from('over quota') };
  expect(rows).toEqual([
    { ...report, key: 'dc_1' },
    { ...report, key: 'dc_2' },
  ]);
  await db.database.query('UPDATE quota_notice SET day = day - 1');
  await notify('dc_2');
  expect((await db.database.query('SELECT FROM outbox')).rowCount).toBe(3);
});

it('reads what an account has used today, with its waiting runs, and which of the given runs are stored', async () => {
  const quotas = new QuotasRepository(db.database);
  const read = async (account: UserId, most = 1000) => {
    const { stored, ...used } = await quotas.usedAndWaiting(account, ['ended', 'w1', 'on its way'], most);
    return { ...used, stored: [...stored].toSorted() };
  };
  expect(await read('u_1')).toEqual({ compute_ms: 0, runs: 0, stored: [] });
  await db.database.query(`INSERT INTO usage (account_id, day, compute_ms, invocations)
    SELECT 'u_1', (now() AT TIME ZONE 'UTC')::date - n, 70, 3 FROM generate_series(0, 1) AS n`);
  await db.database.query("INSERT INTO run_done (run_id) VALUES ('ended')");
  await db.database.query(`INSERT INTO queued_run (run_id, account_id, source_id, hook, request)
    SELECT 'w' || n, 'u_' || least(n, 2), 'dc_1', false, '{}' FROM generate_series(1, 3) AS n`);
  expect(await read('u_1')).toEqual({ compute_ms: 70, runs: 4, stored: ['ended', 'w1'] });
  expect(await read('u_2')).toMatchObject({ compute_ms: 0, runs: 2 });
  expect(await read('u_2', 1)).toMatchObject({ runs: 1 });
});
