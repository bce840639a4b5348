import { afterAll, beforeAll, expect, it } from '@jest/globals';
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
  await Promise.all(['dc_1', 'dc_1', 'dc_2'].map(notify));
  await notify('dc_1');
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
