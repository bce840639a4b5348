import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { FairBatches, schemaOf, type Session } from '#database';
import { freshDatabase, type FreshDatabase, pagesRead, seededRandom } from '#testing';
import { ABOVE_BOUND, LowerBound } from './lower-bound.js';
import { outboxSchema } from './outbox-record.entity.js';
import { UNSENT } from './outbox.js';

const ADD =
  "INSERT INTO outbox (topic, key, account_id, headers) SELECT 'facts', 'k', 'u_1', '{}' FROM generate_series(1, $1) RETURNING id";

let db: FreshDatabase;
/** The relay's. */
let session: PoolClient;
let bound: LowerBound;
let now = 0;
const raise = () => {
  bound.sent();
  return bound.raise((now += 10_000));
};
const add = async (count: number, through: Pick<PoolClient, 'query'> = db.database.pool): Promise<number[]> =>
  (await through.query<{ id: number }>(ADD, [count])).rows.map(({ id }) => id);
const above = async (): Promise<number[]> =>
  (await session.query<{ id: number }>(`SELECT id FROM outbox WHERE NOT refused AND ${ABOVE_BOUND} ORDER BY id`)).rows.map(({ id }) => id);

beforeAll(async () => {
  db = await freshDatabase(schemaOf('outbox', outboxSchema));
});
afterAll(() => db.drop());
beforeEach(async () => {
  await db.database.query('TRUNCATE outbox');
  session = await db.database.connect();
  bound = new LowerBound(session);
});
afterEach(() => session.release(true));

describe('the lower bound', () => {
  it('is the first record that waits, or else the last id', async () => {
    const ids = await add(3);
    await raise();
    await raise();
    expect([bound.value, await above()]).toEqual([ids[0]! - 1, ids]);
    await db.database.query('DELETE FROM outbox');
    await raise();
    expect([bound.value, await above()]).toEqual([ids[2], []]);
    const next = await add(2);
    expect(await above()).toEqual(next);
  });

  it('waits for a transaction that commits a small id late, and for no other one', async () => {
    const [late, reader] = [await db.database.connect(), await db.database.connect()];
    try {
      await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await reader.query('SELECT FROM outbox');
      await late.query('BEGIN');
      const [small] = await add(1, late);
      await add(5);
      await db.database.query('DELETE FROM outbox');
      for (let n = 0; n < 3; n++) await raise();
      expect(bound.value).toBeLessThan(small!);
      await late.query('COMMIT');
      const large = await add(1);
      for (let n = 0; n < 3; n++) await raise();
      expect([bound.value, await above()]).toEqual([small! - 1, [small, ...large]]);
      await db.database.query('DELETE FROM outbox');
      await raise();
      expect(bound.value).toBe(large[0]);
    } finally {
      late.release(true);
      reader.release(true);
    }
  });

  it('is raised again after a transaction that was rolled back, or whose session has ended', async () => {
    const [rolledBack, lost] = [await db.database.connect(), await db.database.connect()];
    for (const client of [rolledBack, lost]) {
      await client.query('BEGIN');
      await add(1, client);
    }
    const [last] = await add(1);
    await db.database.query('DELETE FROM outbox');
    await raise();
    await raise();
    expect(bound.value).toBeLessThan(last! - 2);
    await rolledBack.query('ROLLBACK');
    rolledBack.release(true);
    lost.release(true);
    while (bound.value < last!) await raise();
  });

  it('leaves out no record of many transactions that end in any order', async () => {
    const random = seededRandom(Number(process.env.SLUICE_SEED));
    let working = true;
    const work = async () => {
      const client = await db.database.connect();
      while (working) {
        await client.query('BEGIN');
        await client.query('SAVEPOINT s');
        await add(1, client);
        if (random() < 0.5) await client.query('ROLLBACK TO SAVEPOINT s');
        await sleep(random() * 20);
        await add(1, client);
        await sleep(random() < 0.1 ? 100 : random() * 20);
        await client.query(random() < 0.2 ? 'ROLLBACK' : 'COMMIT');
      }
      client.release(true);
    };
    const workers = Array.from({ length: 6 }, work);
    const values = new Set<number>();
    const relay = async () => {
      await raise();
      values.add(bound.value);
      const ids = await above();
      await session.query('DELETE FROM outbox WHERE id = ANY($1)', [ids]);
    };
    for (const end = performance.now() + 2000; performance.now() < end;) await relay();
    working = false;
    await Promise.all(workers);
    await relay();
    expect((await db.database.query('SELECT FROM outbox')).rows).toEqual([]);
    expect(values.size).toBeGreaterThan(3);
  });

  it('is forgotten every five minutes, so that a record below it, which a person has made sendable again, is sent', async () => {
    const [refused] = await add(1);
    await db.database.query('UPDATE outbox SET refused = true');
    await raise();
    await raise();
    await db.database.query('UPDATE outbox SET refused = false');
    expect(await above()).toEqual([]);
    now += 300_000;
    await bound.raise(now);
    expect(await above()).toEqual([refused]);
  });

  it('begins again at 0 when a person has restarted the ids of the table', async () => {
    await add(3);
    await db.database.query('DELETE FROM outbox');
    for (let n = 0; n < 3; n++) await raise();
    await db.database.query('TRUNCATE outbox RESTART IDENTITY');
    expect(await add(1)).toEqual([1]);
    await raise();
    expect(await above()).toEqual([1]);
  });

  it('costs nothing while nothing is sent', async () => {
    await add(1);
    await db.database.query('DELETE FROM outbox');
    for (let n = 0; n < 3; n++) await bound.raise((now += 10_000));
    const query = jest.spyOn(session, 'query');
    await bound.raise((now += 10_000));
    expect(query).not.toHaveBeenCalled();
    await raise();
    expect(query).toHaveBeenCalled();
  });

  it.each([
    [0, 10],
    [10, 30],
    [2000, 100],
  ])('lets a batch skip the records that were deleted while an old snapshot exists, if %i others wait', async (count, most) => {
    const reader = await db.database.connect();
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await reader.query('SELECT FROM outbox');
    try {
      await add(20_000);
      await db.database.query('DELETE FROM outbox');
      await add(count);
      const batches = new FairBatches(UNSENT);
      const relay: Pick<Session, 'query'> = { query: session.query.bind(session) };
      let isFull: boolean | undefined;
      const look = () => pagesRead(relay, async () => ({ isFull } = await batches.next(relay)));
      expect(await look()).toBeGreaterThan(200);
      await raise();
      await raise();
      expect(await look()).toBeLessThan(most);
      expect(isFull).toBe(count >= 500);
    } finally {
      reader.release(true);
    }
  });
});
