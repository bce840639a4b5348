import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { RunRequest, SourceId } from '#contracts';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { REPEAT_LOST, RetriedRunsRepository } from './retried-runs.repository.js';

const SOURCE = 'dc_1' as SourceId;

let fresh: FreshDatabase;
let retried: RetriedRunsRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  retried = new RetriedRunsRepository(fresh.database);
});
afterAll(() => fresh?.drop());
beforeEach(async () => {
  await fresh.database.query('TRUNCATE deployment, retried_run, outbox CASCADE');
  await fresh.database.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
     VALUES ('dc_1', 'u_1', true, 1, 'h', '{}', '{}', 'n'), ('dc_2', 'u_1', false, 1, 'h', '{}', '{}', 'n')`,
  );
});

/** The next attempt of a run, due in this many seconds. */
const next = (first: string, attempt = 2, inSeconds = -1): RunRequest => ({
  run_id: `${first}~${attempt}`,
  owner_id: 'u_1',
  source_id: SOURCE,
  trigger: 'event',
  event: '{"a":"\\u00e9"}',
  due_at_ms: Date.now() + inSeconds * 1000,
  retry: { first_run_id: first, attempt },
});
const fail = (first: string, request = next(first), sourceId: SourceId = SOURCE) =>
  retried.settle(fresh.database, [{ firstRunId: first, sourceId, next: request }]);
const requested = async (): Promise<RunRequest[]> =>
  (await fresh.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(({ value }) =>
    JSON.parse(String(value)),
  );

describe('a failed run', () => {
  it('is requested once when its next attempt is due, by one of several replicas', async () => {
    const request = next('r1');
    await fail('r1', request);
    await fail('r2', next('r2', 2, 60));
    const released = await Promise.all([retried.release(), retried.release(), retried.release()]);
    expect(released.sort()).toEqual([0, 0, 1]);
    expect(await requested()).toEqual([request]);
    expect(await retried.release()).toBe(0);
  });

  it('is requested again when Kafka has lost the request', async () => {
    const request = next('r1');
    await fail('r1', request);
    await fail('r2', next('r2', 2, 60));
    await retried.release();
    expect(await retried.repeatLost()).toBe(1);
    expect(await retried.release()).toBe(1);
    expect(await requested()).toEqual([request, request]);
  });

  it('is not requested again if it has failed again, and waits for its next attempt', async () => {
    await fail('r1');
    await retried.release();
    await fail('r1', next('r1', 3, 60));
    expect(await retried.repeatLost()).toBe(0);
    expect(await retried.release()).toBe(0);
    expect((await fresh.database.query('SELECT requested_at FROM retried_run')).rows).toEqual([{ requested_at: null }]);
  });

  it('is requested again when Kafka has lost the request of a time when the clock of the database was a day ahead', async () => {
    await fail('r1');
    await retried.release();
    await fresh.database.query("UPDATE retried_run SET requested_at = requested_at + interval '1 day', due_at = due_at + interval '1 day'");
    expect(await retried.repeatLost(60)).toBe(1);
    expect(await retried.msToNext()).toBeLessThanOrEqual(60_000);
    await retried.repeatLost();
    expect(await retried.release()).toBe(1);
  });

  it('is not requested again at the start of a replica before its attempt can have ended', async () => {
    await fail('r1');
    await retried.release();
    expect(await retried.repeatLost(60)).toBe(1);
    expect(await retried.release()).toBe(0);
    await fresh.database.query(
      "UPDATE retried_run SET requested_at = requested_at - interval '1 minute', due_at = now() + interval '1 hour'",
    );
    expect(await retried.repeatLost(60)).toBe(1);
    expect(await retried.release()).toBe(1);
  });

  it('is found by an index among many that wait, if its request may be lost', async () => {
    await fresh.database.query(
      `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request)
       SELECT 'r' || n, 'dc_1', 'u_1', now() + interval '1 hour', '{}' FROM generate_series(1, 20000) AS n`,
    );
    await fresh.database.query('ANALYZE retried_run');
    const { rows } = await fresh.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${REPEAT_LOST.replaceAll('$1', '60')}`);
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('retried_run_requested');
  });

  it('is found in one look at each request, although the planner does not know how many there are', async () => {
    await fresh.database.query(
      `INSERT INTO retried_run (first_run_id, source_id, due_at, requested_at, request)
       SELECT 'r' || n, 'dc_1', now() + interval '1 hour', now(), jsonb_build_object('run_id', 'r' || n, 'due_at_ms', 0) FROM generate_series(1, 500) AS n`,
    );
    const { rows } = await fresh.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${REPEAT_LOST.replaceAll('$1', '60')}`);
    // the subquery of a join may be executed once for each row
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('InitPlan');
  });

  it('is pending until an attempt succeeds or is the last one', async () => {
    await fail('r1');
    await fail('r2');
    await retried.release();
    expect(await retried.pending(['r1', 'r2', 'r3'])).toEqual(new Set(['r1', 'r2']));
    await retried.settle(fresh.database, [
      { firstRunId: 'r1', sourceId: SOURCE, next: null },
      { firstRunId: 'r2', sourceId: SOURCE, next: next('r2', 3, 60) },
    ]);
    expect(await retried.pending(['r1', 'r2'])).toEqual(new Set(['r2']));
  });

  it('is repeated with the attempt that follows the last one', async () => {
    await fail('r1');
    await fail('r1', next('r1', 3));
    await retried.release();
    expect((await requested()).map(({ run_id }) => run_id)).toEqual(['r1~3']);
  });

  it('is requested early although 10 000 of another account are due before it', async () => {
    await fresh.database.query(
      `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request)
       SELECT 'busy' || n, 'dc_1', 'u_busy', now() - interval '1 hour', jsonb_build_object('owner_id', 'u_busy', 'run_id', 'busy', 'due_at_ms', n)
       FROM generate_series(1, 10000) AS n`,
    );
    await fail('r1');
    expect(await retried.release()).toBeLessThan(1000);
    expect((await requested()).map(({ run_id }) => run_id)).toContain('r1~2');
  });

  it('is requested before the second megabyte of another account, also if its requests take few bytes on disk', async () => {
    const event = JSON.stringify('x'.repeat(900_000));
    for (let n = 0; n < 5; n++) await fail(`busy${n}`, { ...next(`busy${n}`, 2, -60), owner_id: 'u_busy', event });
    await fail('r1');
    expect(await retried.release()).toBe(3);
    expect((await requested()).map(({ run_id }) => run_id)).toContain('r1~2');
  });

  it('is not repeated if its source has been deleted or deactivated', async () => {
    await fail('r1', next('r1'), 'dc_2');
    await fail('r2', next('r2'), 'dc_unknown');
    await fail('r3');
    await fresh.database.transaction((transaction) => retried.deleteOfSource(transaction, SOURCE));
    expect(await retried.release()).toBe(0);
  });

  it('does not delay what concerns all runs of its source, or all lost ones, while it ends', async () => {
    for (const id of ['r1', 'r2', 'r3']) await fail(id);
    await retried.release();
    await fresh.database.transaction(async (transaction) => {
      await retried.settle(transaction, [{ firstRunId: 'r1', sourceId: SOURCE, next: null }]);
      expect(await retried.repeatLost()).toBe(2);
      await fresh.database.transaction((another) => retried.deleteOfSource(another, SOURCE));
    });
    expect(await retried.pending(['r1', 'r2', 'r3'])).toEqual(new Set());
  });

  it('is forgotten if its source was deleted while it ended', async () => {
    await fail('r1');
    await fail('r2');
    await fresh.database.query("UPDATE retried_run SET source_id = 'dc_deleted' WHERE first_run_id = 'r1'");
    await retried.deleteOfDeleted();
    expect(await retried.pending(['r1', 'r2'])).toEqual(new Set(['r2']));
  });
});
