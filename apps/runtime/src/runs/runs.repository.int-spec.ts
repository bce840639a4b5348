import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { SourceId, UserId } from '#contracts';
import { createLog } from '#observability';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import type { RunEffects } from './run-effects.js';
import { RunsRepository } from './runs.repository.js';
import { SourceLocks } from './source-locks.js';

const SOURCE = 'dc_1' as SourceId;
const ACCOUNT = 'u_1' as UserId;
const nothing: RunEffects = { db: {}, dedupe: null, waiting: [], records: [], usage: null, final: false };
const event = (n: number) => ({ topic: 'events', key: SOURCE, headers: { n: String(n) }, value: `${n}` });

let fresh: FreshDatabase;
let runs: RunsRepository;
let state: SourceStateRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schema, { max: 20 });
  const { database } = fresh;
  state = new SourceStateRepository(database);
  runs = new RunsRepository(
    database,
    new TimersRepository(database),
    state,
    new WaitingEmitsRepository(database),
    new QuotasRepository(database),
  );
});
afterAll(() => fresh?.drop());
beforeEach(() =>
  fresh.database.query('TRUNCATE deployment, timer, source_db, source_dedupe, run_done, outbox, waiting_emit, usage CASCADE'),
);

const finish = (run_id: string, effects: Partial<RunEffects>, trigger: 'manual' | 'timer' = 'manual') =>
  runs.finish({ run_id, source_id: SOURCE, trigger }, { ...nothing, ...effects });
const outbox = async () =>
  (await fresh.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(({ value }) => value.toString());

describe('the effects of a run', () => {
  it('are written once, however often and from where they are asked for', async () => {
    const usage = { account_id: ACCOUNT, compute_ms: 5 };
    const all = Array.from({ length: 10 }, () => finish('r1', { db: { n: '1' }, records: [event(1)], usage }));
    expect((await Promise.all(all)).filter(Boolean)).toHaveLength(1);
    expect(await runs.isDone('r1')).toBe(true);
    expect(await outbox()).toEqual(['1']);
    const { rows } = await fresh.database.query('SELECT compute_ms, invocations FROM usage');
    expect(rows).toEqual([{ compute_ms: 5, invocations: 1 }]);
  });

  it('are written together or not at all', async () => {
    const broken = { ...event(2), headers: { bad: '\0' } };
    await expect(finish('r2', { db: { n: '2' }, dedupe: { last: 'x' }, records: [event(1), broken] })).rejects.toThrow();
    expect(await runs.isDone('r2')).toBe(false);
    expect(await state.loadDb(SOURCE)).toEqual({});
    expect(await state.loadDedupe(SOURCE)).toEqual({});
    expect(await outbox()).toEqual([]);
  });

  it('on db are the changed keys alone, and null takes one away', async () => {
    await finish('r1', { db: { a: '1', b: '"two"' } });
    await finish('r2', { db: { b: null, c: '{"x":[3]}' } });
    expect(await state.loadDb(SOURCE)).toEqual({ a: '1', c: '{"x":[3]}' });
  });

  it('keep the order of the emits', async () => {
    await finish('r1', { records: Array.from({ length: 1000 }, (_, n) => event(n)) });
    expect(await outbox()).toEqual(Array.from({ length: 1000 }, (_, n) => String(n)));
  });

  it('of the last run include the deletion of the state that the source kept', async () => {
    await finish('r1', { db: { a: '1' }, dedupe: { ids: ['1'] } });
    await finish('r2', { db: { b: '2' }, final: true });
    expect([await state.loadDb(SOURCE), await state.loadDedupe(SOURCE)]).toEqual([{}, {}]);
  });

  it('are remembered until Kafka has deleted the record of the run', async () => {
    await finish('old', {});
    await fresh.database.query("UPDATE run_done SET finished_at = now() - interval '9 days'");
    await finish('new', {});
    await runs.deleteDone(8);
    expect([await runs.isDone('old'), await runs.isDone('new')]).toEqual([false, true]);
  });
});

describe('a source that several replicas run', () => {
  it('has one run at a time, and others do not wait for it', async () => {
    const replicas = [1, 2, 3].map(() => new SourceLocks(fresh.database, createLog('test', 'silent')));
    let [running, most, done] = [0, 0, 0];
    const run = (locks: SourceLocks) =>
      locks.alone(SOURCE, async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 20));
        running--;
        done++;
      });
    let others = 0;
    await Promise.all([
      ...replicas.map(run),
      ...replicas.map((locks, n) => locks.alone(`dc_other${n}`, async () => void (others += done === 0 ? 1 : 0))),
    ]);
    expect([most, done, others]).toEqual([1, 3, 3]);
    await Promise.all(replicas.map((locks) => locks.close()));
  });

  it('is free again when the replica that ran it dies', async () => {
    const [one, two] = [1, 2].map(() => new SourceLocks(fresh.database, createLog('test', 'silent')));
    await one!.alone(SOURCE, async () => {
      const { rows } = await fresh.database.query<{ pid: number }>("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted");
      const waiting = two!.alone(SOURCE, async () => 'ran');
      for (const { pid } of rows) await fresh.database.query('SELECT pg_terminate_backend($1)', [pid]);
      expect(await waiting).toBe('ran');
    });
    expect(await one!.alone('dc_3', async () => 'reconnected')).toBe('reconnected');
    await Promise.all([one!.close(), two!.close()]);
  });
});
