import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { restoreRun, type RunChanges, type SourceId, type UserId } from '#contracts';
import type { Consumers, OutgoingRecord } from '#messaging';
import { createLog } from '#observability';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import type { DeployedSources } from '../deployments/deployed-sources.js';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { type NewWaitingEmit, WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import { RestoredRuns } from './restored-runs.js';
import { recordsOfChanges } from './run-changes.js';
import { NO_EFFECTS } from './run-effects.js';
import { RunLanes } from './run-lanes.js';
import { RunsRepository } from './runs.repository.js';
import { SourceLocks } from './source-locks.js';

const RUN = { run_id: 'r', owner_id: 'u_1' as UserId, source_id: 'dc_1' as SourceId };
const DUE_MS = Date.parse('2030-01-01');
const MEBI = 1024 * 1024;

let fresh: FreshDatabase;
let runs: RunsRepository;
let locks: SourceLocks;
let sources: Set<string>;
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  const { database } = fresh;
  runs = new RunsRepository(
    database,
    new TimersRepository(database),
    new SourceStateRepository(database),
    new WaitingEmitsRepository(database),
    new QuotasRepository(database),
    new RetriedRunsRepository(database),
  );
  locks = new SourceLocks(database, createLog('test', 'silent'));
});
afterAll(async () => {
  await locks?.close();
  await fresh?.drop();
});
beforeEach(async () => {
  sources = new Set([RUN.source_id]);
  await fresh.database.query('TRUNCATE source_db, source_dedupe, waiting_emit, run_done, finished_run, outbox');
});

type Changes = Parameters<typeof recordsOfChanges>[1];

function recordsOf(changes: Partial<Changes>): OutgoingRecord[] {
  const slices = recordsOfChanges(RUN, { db: {}, dedupe: null, waiting: [], ...changes });
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
  }
}
const emit = (id: string, value = JSON.stringify(id)): NewWaitingEmit => ({
  ...{ emit_id: id, due_at_ms: DUE_MS },
  record: { key: RUN.source_id, headers: { ce_id: id }, value: Buffer.from(value) },
});

/** Handles the records as they arrive. */
async function restore(records: OutgoingRecord[]): Promise<number> {
  const found = { find: async (id: string) => (sources.has(id) ? {} : undefined) } as unknown as DeployedSources;
  const restored = new RestoredRuns(runs, found, new RunLanes({} as Consumers), locks, createLog('test', 'silent'));
  const planned = await restored.plan(records.map(({ value }) => JSON.parse(String(value)) as RunChanges));
  const tasks = planned.flat();
  for (const task of tasks) await task.run(() => {});
  return tasks.length;
}

const stored = async () => {
  const db = await new SourceStateRepository(fresh.database).loadDb(RUN.source_id);
  const dedupe = await new SourceStateRepository(fresh.database).loadDedupe(RUN.source_id);
  const { rows } = await fresh.database.query<{ emit_id: string; due: number; headers: object; value: Buffer }>(
    'SELECT emit_id, extract(epoch FROM due_at)::float8 AS due, headers, value FROM waiting_emit WHERE source_id = $1 ORDER BY due_at',
    [RUN.source_id],
  );
  return { db, dedupe, waiting: rows.map((row) => ({ ...row, value: String(row.value) })) };
};

describe('the changes of a run whose component has responded to its request itself', () => {
  const CHANGES = { db: { kept: '"ü"', removed: null, ['__proto__']: '1' }, dedupe: { ids: ['a'] }, waiting: [emit('b'), emit('a')] };

  it('are stored again if the database does not know the run, once', async () => {
    await fresh.database.query(`INSERT INTO source_db (source_id, key, value) VALUES ('dc_1', 'removed', '1'), ('dc_1', 'other', '2')`);
    const records = recordsOf(CHANGES);
    expect(records.map(({ topic, key }) => [topic, key])).toEqual([[restoreRun.topic, RUN.owner_id]]);
    expect([await restore(records), await restore(records)]).toEqual([1, 0]);
    const { db, dedupe, waiting } = await stored();
    expect(Object.entries(db).sort()).toEqual([
      ['__proto__', '1'],
      ['kept', '"ü"'],
      ['other', '2'],
    ]);
    expect(dedupe).toEqual({ ids: ['a'] });
    expect(waiting).toEqual([
      { emit_id: 'b', due: DUE_MS / 1000, headers: { ce_id: 'b' }, value: '"b"' },
      { emit_id: 'a', due: DUE_MS / 1000 + 1e-6, headers: { ce_id: 'a' }, value: '"a"' },
    ]);
  });

  it('are not stored again while the database knows the run', async () => {
    await runs.finish({ ...RUN, trigger: 'http' }, { ...NO_EFFECTS, ...CHANGES });
    const before = await stored();
    expect(await restore(recordsOf(CHANGES))).toBe(0);
    expect(await stored()).toEqual(before);
  });

  it('are not stored for a source that does not exist', async () => {
    sources.clear();
    await restore(recordsOf(CHANGES));
    expect(await stored()).toEqual({ db: {}, dedupe: {}, waiting: [] });
  });

  it('come in parts that Kafka accepts, each of which is stored once', async () => {
    const quotes = JSON.stringify('"'.repeat(MEBI / 2 - 1));
    const waiting = Array.from({ length: 3 }, (_, n) => emit(`e${n}`, quotes));
    const db = Object.fromEntries(Array.from({ length: 1024 }, (_, n) => [`k${n}`, JSON.stringify('€'.repeat(1000))]));
    const records = recordsOf({ db, waiting, dedupe: { last: 'z' } });
    expect(records.length).toBeGreaterThan(4);
    for (const { value } of records) expect(Buffer.byteLength(value as string)).toBeLessThan(4 * MEBI - 64 * 1024);
    // the process ended after the first two
    await restore(records.slice(0, 2));
    await restore(records);
    const found = await stored();
    expect([found.db, found.dedupe, found.waiting.map(({ emit_id }) => emit_id)]).toEqual([db, { last: 'z' }, ['e0', 'e1', 'e2']]);
    // in the order of their calls, although each is in another part
    expect(new Set(found.waiting.map(({ due }) => due)).size).toBe(3);
  });

  it('do not hold up their source if the database refuses them', async () => {
    expect(await restore(recordsOf({ db: { nul: '"\0"' } }))).toBe(1);
    expect((await stored()).db).toEqual({});
  });

  it('have no record if there are none', () => {
    expect(recordsOf({})).toEqual([]);
    expect(recordsOf({ dedupe: { last: 'a' } })).toHaveLength(1);
  });
});
