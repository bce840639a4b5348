import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { newId } from '#contracts';
import { Database, schemaOf, type Transaction } from '#database';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase, untilLocked } from '#testing';
import { DELETE_STATS, StatsRepository, statsSchema } from './stats.repository.js';
import { Stats } from './stats.js';

const HOUR_S = 3600;
/** A full hour. */
const START = 1_800_000_000;
let fresh: FreshDatabase;
let writes: number;
let databaseIsDown: boolean;
let now: number;

beforeAll(async () => {
  fresh = await freshDatabase(schemaOf('stats', statsSchema));
});
afterAll(() => fresh?.drop());
beforeEach(() => {
  [writes, databaseIsDown, now] = [0, false, START];
  jest.spyOn(Date, 'now').mockImplementation(() => now * 1000);
});
afterEach(() => {
  jest.restoreAllMocks();
});

const replica = (): Stats => {
  const { database } = fresh;
  const query = async (...statement: Parameters<Database['query']>) => {
    if (databaseIsDown) throw new Error('PostgreSQL is down');
    return database.query(...statement);
  };
  const transaction = async <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> => {
    writes += 1;
    if (databaseIsDown) throw new Error('PostgreSQL is down');
    return database.transaction(work);
  };
  return statsOn({ query, transaction } as unknown as Database);
};
const statsOn = (database: Database): Stats => new Stats(new StatsRepository(database), createLog('test', 'silent'));
const bucket = (start: number, counts: object) => ({ start, events: 0, ended: 0, failed: 0, p50_ms: null, p99_ms: null, ...counts });

describe('statistics', () => {
  it('are written by one statement, however much is counted', async () => {
    const stats = replica();
    const sources = Array.from({ length: 50 }, () => newId('source'));
    for (const id of sources) for (let n = 0; n < 10; n++) stats.countEvent(id, now * 1000);
    expect(writes).toBe(0);
    await stats.flush();
    await stats.flush();
    expect(writes).toBe(1);
    expect(await stats.list(sources[7]!, START, 60)).toEqual([bucket(START, { events: 10 })]);
  });

  it('counts of several replicas and flushes add up, durations included', async () => {
    const [one, other, id] = [replica(), replica(), newId('webhook')];
    one.countEnded(id, { durationMs: 1, failed: false });
    await one.flush();
    other.countEnded(id, { durationMs: 1, failed: false });
    other.countEnded(id, { durationMs: 1000, failed: true });
    await other.flush();
    one.countEnded(id, { durationMs: 1, failed: false });
    const [only, ...more] = await one.list(id, START, 60);
    expect(more).toEqual([]);
    expect(only).toEqual(bucket(START, { ended: 4, failed: 1, p50_ms: 1, p99_ms: expect.any(Number) }));
    expect(Math.abs(only!.p99_ms! - 1000)).toBeLessThan(50);
    expect(await other.list(id, START, 60)).toEqual([only]);
  });

  it('counts that replicas write at the same time add up, whatever their order', async () => {
    const ids = Array.from({ length: 200 }, () => newId('source'));
    const replicas = Array.from({ length: 4 }, replica);
    replicas.forEach((stats, n) => (n % 2 === 0 ? ids : ids.toReversed()).forEach((id) => stats.countEvent(id, now * 1000)));
    await Promise.all(replicas.map((stats) => stats.flush()));
    for (const id of ids) expect(await replicas[0]!.list(id, START, 60)).toEqual([bucket(START, { events: 4 })]);
  });

  it('are returned by minutes, hours and multiples of hours, from a given time on', async () => {
    const [stats, id] = [replica(), newId('source')];
    for (const at of [0, 59, 60, HOUR_S, 6 * HOUR_S]) {
      now = START + at;
      stats.countEvent(id, now * 1000);
      await stats.flush();
    }
    const counts = async (fromS: number, bucketS: number) =>
      (await stats.list(id, fromS, bucketS)).map(({ start, events }) => [start - START, events]).sort(([a], [b]) => a! - b!);
    expect(await counts(START, 60)).toEqual([
      [0, 2],
      [60, 1],
      [HOUR_S, 1],
      [6 * HOUR_S, 1],
    ]);
    expect(await counts(START + HOUR_S, HOUR_S)).toEqual([
      [HOUR_S, 1],
      [6 * HOUR_S, 1],
    ]);
    expect((await counts(START - 12 * HOUR_S, 6 * HOUR_S)).reduce((sum, [, events]) => sum + events!, 0)).toBe(5);
  });

  it('count an event in the minute of its time, although it comes late, and one of the future in this minute', async () => {
    const [stats, id] = [replica(), newId('source')];
    const DAY_S = 24 * HOUR_S;
    for (const at of [60, 0, -61, -90 * 60, -90 * 60, -3 * HOUR_S, -9 * DAY_S]) stats.countEvent(id, (START + at) * 1000 + 999);
    await stats.flush();
    stats.countEvent(id, (START - 61) * 1000);
    const counts = async (bucketS: number) =>
      (await stats.list(id, 0, bucketS)).map(({ start, events }) => [start - START, events]).sort(([a], [b]) => a! - b!);
    expect(await counts(60)).toEqual([
      [-90 * 60, 2],
      [-120, 2],
      [0, 2],
    ]);
    expect(await counts(HOUR_S)).toEqual([
      [-3 * HOUR_S, 1],
      [-2 * HOUR_S, 2],
      [-HOUR_S, 2],
      [0, 2],
    ]);
  });

  it('are written by a later flush if the database is down', async () => {
    const [stats, id] = [replica(), newId('source')];
    databaseIsDown = true;
    stats.countEvent(id, now * 1000);
    await stats.flush();
    stats.countEvent(id, now * 1000);
    databaseIsDown = false;
    expect(await stats.list(id, START, 60)).toEqual([bucket(START, { events: 2 })]);
  });

  it('count once when they are written again after a statement that has waited too long for a lock', async () => {
    const { rows } = await fresh.database.query<{ name: string }>('SELECT current_database() AS name');
    const connection = { serverUrl: fresh.url, name: rows[0]!.name, max: 2, log: createLog('test', 'silent'), responseMs: 300 };
    const impatient = await Database.of(schemaOf('stats', statsSchema), connection).open();
    const [stats, id] = [statsOn(impatient), newId('source')];
    stats.countEvent(id, now * 1000);
    await fresh.database.transaction(async (transaction) => {
      await transaction.query('LOCK TABLE stat');
      await stats.flush();
      await untilLocked(fresh);
    });
    // behind the statement that was given up
    await fresh.database.transaction((transaction) => transaction.query('LOCK TABLE stat'));
    expect(await stats.list(id, START, 60)).toEqual([bucket(START, { events: 1 })]);
    await impatient.close();
  });

  it('are written when the process stops', async () => {
    const [stats, id] = [replica(), newId('source')];
    stats.countEvent(id, now * 1000);
    await stats.onApplicationShutdown();
    expect(await replica().list(id, START, 60)).toHaveLength(1);
  });

  it('are deleted with their subjects', async () => {
    const [stats, deleted, other] = [replica(), newId('source'), newId('source')];
    for (const id of [deleted, other]) stats.countEvent(id, now * 1000);
    await stats.flush();
    await fresh.database.query(DELETE_STATS, [deleted]);
    expect([await stats.list(deleted, START, 60), (await stats.list(other, START, 60)).length]).toEqual([[], 1]);
  });

  it('are deleted after two hours by minutes, and after eight days by hours', async () => {
    const [stats, id] = [replica(), newId('source')];
    stats.countEvent(id, now * 1000);
    await stats.flush();
    now = START + 3 * HOUR_S;
    await stats.deleteOld();
    expect([await stats.list(id, START, 60), (await stats.list(id, START, HOUR_S)).length]).toEqual([[], 1]);
    now = START + 9 * 24 * HOUR_S;
    await stats.deleteOld();
    expect(await stats.list(id, START, HOUR_S)).toEqual([]);
  });
});
