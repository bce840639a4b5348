import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId, type RunRequest, type SourceId, type UserId } from '#contracts';
import { freshDatabase, type FreshDatabase } from '#testing';
import { WaitingEntriesRepository } from '#waiting-data';
import { schema } from './database/schema.js';
import { DELETE_RUNS_OF_SOURCE, QueuedRunsRepository } from './queue/queued-runs.repository.js';
import { RetriedRunsRepository } from './retries/retried-runs.repository.js';
import { DELETE_WAITING_EMITS, WaitingEmitsRepository } from './waiting/waiting-emits.repository.js';

/** The size of a row without its data. */
const ROW = 512;
const LARGE = 100_000;

let fresh: FreshDatabase;
let entries: WaitingEntriesRepository;
let queue: QueuedRunsRepository;
let retries: RetriedRunsRepository;
let emits: WaitingEmitsRepository;
let owner: UserId;
let source: SourceId;

beforeAll(async () => {
  fresh = await freshDatabase(schema);
  entries = new WaitingEntriesRepository(fresh.database);
  queue = new QueuedRunsRepository(fresh.database);
  retries = new RetriedRunsRepository(fresh.database);
  emits = new WaitingEmitsRepository(fresh.database);
});
afterAll(() => fresh?.drop());
beforeEach(() => {
  owner = newId('user');
  source = newId('source');
});

const run = (run_id: string, bytes: number): RunRequest => ({
  run_id: `${run_id} ${owner}`,
  owner_id: owner,
  source_id: source,
  trigger: 'event',
  event: 'x'.repeat(bytes),
  due_at_ms: Date.now(),
});
const has = async (table: string): Promise<[rows: number, bytes: number]> => {
  const count = (await entries.counts((holder) => holder)).find((each) => each.account === owner && each.table === table);
  return [count?.rows ?? 0, count?.bytes ?? 0];
};
const deploy = () =>
  fresh.database.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
     VALUES ($1, $2, true, 1, 'h', '{}', '{}', 'n')`,
    [source, owner],
  );

describe('the queued runs of an account', () => {
  it('are counted with their requests, until they have run', async () => {
    const runs = [run('a', 10), run('b', LARGE)];
    await queue.add(runs);
    await queue.add(runs);
    const [rows, bytes] = await has('queued_run');
    expect(rows).toBe(2);
    // jsonb has a space after each colon and comma
    expect(bytes).toBeGreaterThanOrEqual(2 * ROW + JSON.stringify(runs[0]).length + JSON.stringify(runs[1]).length);
    expect(bytes).toBeLessThan(2 * ROW + LARGE + 1000);
    for (const { run_id } of runs) await queue.remove(run_id);
    expect(await has('queued_run')).toEqual([0, 0]);
  });

  it('go with their source', async () => {
    await queue.add([run('a', LARGE), run('b', LARGE)]);
    await fresh.database.query(DELETE_RUNS_OF_SOURCE, [source]);
    expect(await has('queued_run')).toEqual([0, 0]);
  });

  it('runs that were not committed are not counted', async () => {
    const failed = fresh.database.transaction(async (transaction) => {
      await queue.add([run('a', LARGE)], { session: transaction });
      throw new Error('killed');
    });
    await expect(failed).rejects.toThrow('killed');
    expect(await has('queued_run')).toEqual([0, 0]);
  });
});

describe('the retried runs of an account', () => {
  it('are counted with their last request, until an attempt succeeds', async () => {
    await deploy();
    const settle = (next: RunRequest | null) => retries.settle(fresh.database, [{ firstRunId: `first ${owner}`, sourceId: source, next }]);
    await settle(run('second', LARGE));
    const [rows, bytes] = await has('retried_run');
    expect([rows, bytes > LARGE]).toEqual([1, true]);
    // its id is two characters longer
    await settle(run('the third', LARGE));
    expect(await has('retried_run')).toEqual([1, bytes + 'the third'.length - 'second'.length]);
    await settle(null);
    expect(await has('retried_run')).toEqual([0, 0]);
  });
});

describe('the waiting emits of an account', () => {
  const add = (emit_id: string) =>
    fresh.database.transaction((transaction) =>
      emits.add(transaction, { source_id: source, owner_id: owner }, [
        { emit_id: `${emit_id} ${owner}`, due_at_ms: 0, record: { key: source, headers: {}, value: Buffer.alloc(LARGE, '1') } },
      ]),
    );

  it('are counted until they are emitted, or deleted with their source', async () => {
    await add('a');
    await add('b');
    expect(await has('waiting_emit')).toEqual([2, 2 * (ROW + '{}'.length + LARGE)]);
    await emits.release([{ emitter_id: source, emit_id: `a ${owner}` }], []);
    expect(await has('waiting_emit')).toEqual([1, ROW + '{}'.length + LARGE]);
    await fresh.database.query(DELETE_WAITING_EMITS, [source]);
    expect(await has('waiting_emit')).toEqual([0, 0]);
  });

  it('are counted with their headers', async () => {
    const headers = { 'sluice-summary': 'x'.repeat(LARGE) };
    const emit = { emit_id: `a ${owner}`, due_at_ms: 0, record: { key: source, headers, value: Buffer.from('1') } };
    await fresh.database.transaction((transaction) => emits.add(transaction, { source_id: source, owner_id: owner }, [emit]));
    expect(await has('waiting_emit')).toEqual([1, ROW + JSON.stringify(headers).length + 1]);
    await emits.release([{ emitter_id: source, emit_id: emit.emit_id }], []);
    expect(await has('waiting_emit')).toEqual([0, 0]);
  });

  it('emits of an account that an older version did not name are counted', async () => {
    await fresh.database.query(
      "INSERT INTO waiting_emit (emit_id, source_id, due_at, headers, value) VALUES ('old', 'dc_1', now(), '{}', '1')",
    );
    const counts = await entries.counts((holder) => holder);
    expect(counts.find(({ table, account }) => table === 'waiting_emit' && account === '')).toMatchObject({ rows: 1, bytes: ROW + 1 });
    await fresh.database.query("UPDATE waiting_emit SET value = '12345' WHERE emit_id = 'old'");
    await fresh.database.query('TRUNCATE waiting_emit');
    expect(await entries.counts((holder) => holder)).not.toContainEqual(expect.objectContaining({ table: 'waiting_emit' }));
  });
});
