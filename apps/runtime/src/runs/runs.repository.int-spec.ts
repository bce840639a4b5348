import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { PoolClient } from 'pg';
import type { SourceId, UserId } from '#contracts';
import type { EmitterChange } from '#emitters';
import { runIdOf, runKeyOf } from '#events';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { freshDatabase, type FreshDatabase, untilLocked } from '#testing';
import { schema } from '../database/schema.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { DeploymentsService } from '../deployments/deployments.service.js';
import { QueueSignal } from '../queue/queue-signal.js';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import { NO_EFFECTS, type RunEffects, type RunEntry, skippedEntry } from './run-effects.js';
import { type RunsPage, RunsRepository } from './runs.repository.js';
import { SourceLocks } from './source-locks.js';

const SOURCE = 'dc_1' as SourceId;
const ACCOUNT = 'u_1' as UserId;
const event = (n: number) => ({ topic: 'events', key: SOURCE, headers: { n: String(n) }, value: `${n}` });

let fresh: FreshDatabase;
let runs: RunsRepository;
/** Those of another replica. */
let others: RunsRepository;
let state: SourceStateRepository;
let queue: QueuedRunsRepository;
let retried: RetriedRunsRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schema, { max: 20 });
  const { database } = fresh;
  queue = new QueuedRunsRepository(database);
  retried = new RetriedRunsRepository(database);
  state = new SourceStateRepository(database);
  [runs, others] = [1, 2].map(
    () =>
      new RunsRepository(
        database,
        new TimersRepository(database),
        state,
        new WaitingEmitsRepository(database),
        new QuotasRepository(database),
        retried,
      ),
  ) as [RunsRepository, RunsRepository];
});
afterAll(() => fresh?.drop());
beforeEach(() =>
  fresh.database.query(
    'TRUNCATE deployment, timer, source_db, source_dedupe, run_done, finished_run, outbox, waiting_emit, usage, queued_run, retried_run CASCADE',
  ),
);

const finish = (run_id: string, effects: Partial<RunEffects>, trigger: 'manual' | 'timer' = 'manual', replica = runs) =>
  replica.finish({ run_id, source_id: SOURCE, owner_id: ACCOUNT, trigger }, { ...NO_EFFECTS, ...effects });
const outbox = async () =>
  (await fresh.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(({ value }) => value.toString());

/** The outcome of a run of this account with an event of this size. */
const finishOf = (owner_id: UserId, run_id: string, bytes: number) =>
  runs.finish(
    { run_id, source_id: `dc_${run_id}`, owner_id, trigger: 'manual' },
    { ...NO_EFFECTS, records: [{ topic: 'events', key: `dc_${run_id}`, value: Buffer.alloc(bytes, 'x') }] },
  );

/** Blocks the outcomes of these runs until the result is called. */
const block = (...runIds: string[]) => blockRows('INSERT INTO run_done (run_id) SELECT unnest($1::text[])', [runIds]);

/** Locks what this statement changes until the result is called. */
async function blockRows(text: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const client = await fresh.database.connect();
  await client.query('BEGIN');
  await client.query(text, values);
  return async () => {
    await client.query('ROLLBACK');
    client.release(true);
  };
}

describe('a large outcome', () => {
  const [OTHER, LARGE] = ['u_2' as UserId, 1 << 20];

  it('a large outcome that takes long to store does not delay small ones, nor the large ones of other accounts', async () => {
    const ids = Array.from({ length: 6 }, (_, n) => `large${n}`);
    const unblock = await block(...ids);
    const blocked = Promise.all(ids.map((id) => finishOf(ACCOUNT, id, LARGE)));
    expect(await finishOf(OTHER, 'small', 10)).toBe(true);
    expect(await finishOf(ACCOUNT, 'small-too', 10)).toBe(true);
    expect(await finishOf(OTHER, 'large', LARGE)).toBe(true);
    await unblock();
    expect(await blocked).toEqual(ids.map(() => true));
  });

  it('does not delay the small ones of other accounts while a small one of its source waits for it', async () => {
    const usage = { account_id: ACCOUNT, compute_ms: 5 };
    const unblock = await blockRows(
      "INSERT INTO usage (account_id, day, compute_ms, invocations) VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 0, 0)",
      [ACCOUNT],
    );
    const large = finish('large', { db: { k: '1' }, usage, records: [{ ...event(1), value: 'x'.repeat(LARGE) }] });
    await untilLocked(fresh);
    const small = finish('small', { db: { k: '2' }, usage });
    expect(await finishOf(OTHER, 'other', 10)).toBe(true);
    await unblock();
    expect([await large, await small, await state.loadDb(SOURCE)]).toEqual([true, true, { k: '2' }]);
  });

  it('does not delay those of another replica that change the state of its source while its delayed emits are stored', async () => {
    const emit = { emit_id: 'e1', due_at_ms: 1, record: { key: SOURCE, headers: {}, value: Buffer.alloc(LARGE) } };
    const unblock = await blockRows(
      `INSERT INTO waiting_emit (emit_id, source_id, account_id, due_at, headers, value) VALUES ('e1', 'dc_1', 'u_1', now(), '{}', '')`,
    );
    const large = finish('large', { db: { k: '1' }, waiting: [emit] });
    await untilLocked(fresh);
    expect(await finish('small', { db: { k: '2' } }, 'manual', others)).toBe(true);
    await unblock();
    expect(await large).toBe(true);
  });

  it('has its records in their order, and its other effects', async () => {
    const records = Array.from({ length: 30 }, (_, n) => ({ ...event(n), value: `${n}`.padEnd(100_000) }));
    const waiting = records.map(({ headers, value }, n) => ({
      emit_id: `e${n}`,
      due_at_ms: 1,
      record: { key: SOURCE, headers, value: Buffer.from(value) },
    }));
    expect(await finish('r1', { records, waiting, db: { a: '1' } })).toBe(true);
    expect((await outbox()).map(Number)).toEqual(records.map((_, n) => n));
    const { rows } = await fresh.database.query('SELECT FROM waiting_emit WHERE account_id = $1', [ACCOUNT]);
    expect([rows.length, await state.loadDb(SOURCE)]).toEqual([30, { a: '1' }]);
  });

  it('is stored once, and one that cannot be stored is an error of its run only', async () => {
    expect(await Promise.all([finishOf(ACCOUNT, 'twice', LARGE), finishOf(ACCOUNT, 'twice', LARGE)])).toEqual([true, false]);
    const broken = finishOf(ACCOUNT, 'bro\0ken', LARGE);
    const next = finishOf(ACCOUNT, 'next', LARGE);
    await expect(broken).rejects.toThrow();
    expect(await next).toBe(true);
  });
});

describe('the effects of a run', () => {
  it('are written once, even if several replicas repeat the run', async () => {
    const usage = { account_id: ACCOUNT, compute_ms: 5 };
    const all = Array.from({ length: 10 }, () => finish('r1', { db: { n: '1' }, records: [event(1)], usage }));
    expect((await Promise.all(all)).filter(Boolean)).toHaveLength(1);
    expect(await runs.isDone('r1')).toBe(true);
    expect(await outbox()).toEqual(['1']);
    const { rows } = await fresh.database.query('SELECT compute_ms, invocations FROM usage');
    expect(rows).toEqual([{ compute_ms: 5, invocations: 1 }]);
  });

  it('are all those of one execution, even if two executions of the run end at the same time', async () => {
    const executions = ['first', 'second'].map((value) => ({ db: { by: `"${value}"` }, records: [{ ...event(1), value }] }));
    expect(await Promise.all(executions.map((effects) => finish('r1', effects)))).toEqual([true, false]);
    expect([await outbox(), await state.loadDb(SOURCE)]).toEqual([['first'], { by: '"first"' }]);
  });

  it('are written when the run leaves the queue, in one transaction', async () => {
    const queued = ['r1', 'r2'].map(
      (run_id) => ({ run_id, owner_id: ACCOUNT, source_id: SOURCE, trigger: 'manual', due_at_ms: 1 }) as const,
    );
    const waiting = async () =>
      (await queue.next(ACCOUNT, [], { replica: 'one', hooks: 8, runs: 8, further: 8, after: '' })).map(({ request }) => request.run_id);
    await queue.add(queued);
    await expect(finish('r1', { records: [{ ...event(1), headers: { bad: '\0' } }] })).rejects.toThrow();
    expect(await waiting()).toEqual(['r1', 'r2']);
    await finish('r1', {});
    expect(await waiting()).toEqual(['r2']);
  });

  it('are written together or not at all', async () => {
    const broken = { ...event(2), headers: { bad: '\0' } };
    await expect(finish('r2', { db: { n: '2' }, dedupe: { last: 'x' }, records: [event(1), broken] })).rejects.toThrow();
    expect(await runs.isDone('r2')).toBe(false);
    expect(await state.loadDb(SOURCE)).toEqual({});
    expect(await state.loadDedupe(SOURCE)).toEqual({});
    expect(await outbox()).toEqual([]);
  });

  it('on db consist of the changed keys, and null deletes a key', async () => {
    await finish('r1', { db: { a: '1', b: '"two"' } });
    await finish('r2', { db: { b: null, c: '{"x":[3]}' } });
    expect(await state.loadDb(SOURCE)).toEqual({ a: '1', c: '{"x":[3]}' });
  });

  it('keep the order of the emits', async () => {
    await finish('r1', { records: Array.from({ length: 1000 }, (_, n) => event(n)) });
    expect(await outbox()).toEqual(Array.from({ length: 1000 }, (_, n) => String(n)));
  });

  it.each([
    ['the same keys in another order', { c: '"two"', a: '"two"' }, { a: '"two"', b: '"one"', c: '"two"' }],
    ['a key that the other deletes', { c: '"two"', a: null }, { b: '"one"', c: '"two"' }],
  ])('on db do not deadlock if runs of two replicas change %s', async (_, db, expected) => {
    await finish('r0', { db: { a: '0', b: '0', c: '0' } });
    const unblock = await blockRows("SELECT FROM source_db WHERE key = 'b' FOR UPDATE");
    const one = finish('r1', { db: { a: '"one"', b: '"one"', c: '"one"' } });
    await untilLocked(fresh);
    const two = finish('r2', { db }, 'manual', others);
    await untilLocked(fresh, 2);
    await unblock();
    expect(await Promise.all([one, two])).toEqual([true, true]);
    expect(await state.loadDb(SOURCE)).toEqual(expected);
  });

  /** Applies a version of the source, which has two timers. */
  const deployer = () => {
    const { database } = fresh;
    const deployments = new DeploymentsService(
      new DeploymentsRepository(database),
      new TimersRepository(database),
      ...([queue, new QueueSignal(), retried, state, new SecretBox([])] as const),
      { forget: () => {} } as unknown as Sandbox,
    );
    const schedules = { a: { interval_seconds: 60, cron: null }, b: { interval_seconds: 60, cron: null } };
    const change = (version: number, active: boolean, first: boolean): EmitterChange => ({
      first,
      state: {
        ...{ emitter_id: SOURCE, kind: 'source', owner_id: ACCOUNT, active, deleted: false, version, name: 'n', created_at_ms: 1 },
        deployment: { code_hash: 'h', configured_props: {}, schedules, endpoint_key: null, name_slug: 'n' },
      },
    });
    const apply = (...args: Parameters<typeof change>) =>
      database.transaction((transaction) => deployments.emittersChanged(transaction, [change(...args)]));
    return apply;
  };

  it('are stored with those of other accounts while the source is switched off, although it has timers and retried runs', async () => {
    const { database } = fresh;
    const apply = deployer();
    await apply(1, true, true);
    await database.query("UPDATE timer SET run_id = 'tick', resume_at = now() WHERE prop = 'b'");
    await database.query(
      `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request) VALUES ('r', 'dc_1', 'u_1', now(), '{}')`,
    );
    const unblock = await blockRows("SELECT FROM timer WHERE prop = 'a' FOR UPDATE");
    const switchedOff = apply(2, false, false);
    await untilLocked(fresh);
    const ended = [
      finish('tick', {}, 'timer'),
      finish('r~2', { attempt: { firstRunId: 'r', sourceId: SOURCE, next: null } }),
      finishOf('u_2', 'other', 10),
    ];
    await untilLocked(fresh, 2);
    await unblock();
    expect(await Promise.all(ended)).toEqual([true, true, true]);
    await switchedOff;
    const { rows } = await database.query('SELECT FROM timer UNION ALL SELECT FROM retried_run');
    expect(rows).toEqual([]);
  });

  it('are stored while many retried runs of the source that wait are deleted, because it is switched off', async () => {
    const { database } = fresh;
    const apply = deployer();
    await apply(1, true, true);
    await database.query(
      `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request) VALUES ('r', 'dc_1', 'u_1', now(), '{}')`,
    );
    // makes the deletion take long
    await database.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN OLD; END';
      CREATE TRIGGER wait BEFORE DELETE ON retried_run FOR EACH ROW EXECUTE FUNCTION wait()`);
    const unblock = await blockRows('SELECT pg_advisory_xact_lock(7)');
    const switchedOff = apply(2, false, false);
    await untilLocked(fresh);
    expect(await finish('r1', { db: { a: '1' } })).toBe(true);
    await unblock();
    await switchedOff;
    await database.query('DROP FUNCTION wait CASCADE');
    expect((await database.query('SELECT FROM retried_run')).rows).toEqual([]);
  });

  it('the last run of a source deletes the state that the source kept', async () => {
    await finish('r1', { db: { a: '1' }, dedupe: { ids: ['1'] } });
    await finish('r2', { db: { b: '2' }, final: true });
    expect([await state.loadDb(SOURCE), await state.loadDedupe(SOURCE)]).toEqual([{}, {}]);
  });

  it('the state that a run writes after the last one is deleted, unless the last one still waits', async () => {
    await finish('r1', { final: true });
    await finish('r2', { db: { a: '1' }, dedupe: { ids: ['1'] } });
    await queue.add([{ run_id: 'last', owner_id: ACCOUNT, source_id: SOURCE, trigger: 'hook', due_at_ms: 1 }]);
    await state.deleteOfDeleted();
    expect(await state.loadDb(SOURCE)).toEqual({ a: '1' });
    await queue.remove('last');
    await state.deleteOfDeleted();
    expect([await state.loadDb(SOURCE), await state.loadDedupe(SOURCE)]).toEqual([{}, {}]);
  });

  it('do not wait if their source is deleted, whether the run ends before or after its last hook', async () => {
    const waiting = new WaitingEmitsRepository(fresh.database);
    const later = (emit_id: string): RunEffects['waiting'] => [
      { emit_id, due_at_ms: Date.now() + 60_000, record: { ...event(1), value: Buffer.from('1') } },
    ];
    const count = async () => (await fresh.database.query<{ count: number }>('SELECT count(*)::int FROM waiting_emit')).rows[0]?.count;
    await finish('r1', { waiting: later('before') });
    expect(await count()).toBe(1);
    await finish('r2', { waiting: later('last'), final: true });
    expect(await count()).toBe(0);
    await finish('r3', { waiting: later('after') });
    await waiting.deleteOfDeleted();
    expect(await count()).toBe(0);
  });

  it('are listed with the run, newest first, and only the last 100', async () => {
    const entry = (n: number): RunEntry => ({
      ...{ trigger: 'manual', method: 'run', status: 'succeeded', started_at: new Date(n), duration_ms: n, emitted: 0, error: null },
    });
    for (let n = 1; n <= 160; n++) await finish(`r${n}`, { entry: entry(n) });
    expect(await finish('r160', { entry: entry(160) })).toBe(false);
    const first = await runs.page(SOURCE, { limit: 2 });
    expect([first.total, first.rows.map(({ run_id }) => run_id)]).toEqual([100, ['r160', 'r159']]);
    const page = async (window: RunsPage) => (await runs.page(SOURCE, window)).rows.map(({ run_id }) => run_id);
    expect((await runs.page(SOURCE, { limit: 1, after: 'r159' })).rows[0]).toMatchObject({ run_id: 'r158', duration_ms: 158 });
    expect(await page({ limit: 9, before: 'r159' })).toEqual(['r160']);
    expect(await page({ limit: 1, before: 'r158' })).toEqual(['r159']);
    expect(await page({ limit: 9, after: 'r159', before: 'r157' })).toEqual(['r158']);
    expect((await page({ limit: 100, after: 'r159' })).at(-1)).toBe('r61');
    // older than all that are listed
    expect([await page({ limit: 9, after: 'r1' }), await page({ limit: 2, before: 'r1' })]).toEqual([[], ['r62', 'r61']]);
    const { rows } = await fresh.database.query<{ kept: number }>('SELECT count(*)::int AS kept FROM finished_run');
    expect(rows[0]!.kept).toBeLessThan(100 + 51);
    expect((await runs.page('dc_2', { limit: 2 })).total).toBe(0);
  });

  it('are deleted with their source, including those of a run that ended later', async () => {
    const entry: RunEntry = {
      ...{ trigger: 'timer', method: 'run', status: 'failed', started_at: new Date(), duration_ms: 1, emitted: 2, error: '{}' },
    };
    await finish('r1', { entry });
    await finish('r2', { entry: { ...entry, method: 'deactivate' }, final: true });
    expect((await runs.page(SOURCE, { limit: 9 })).total).toBe(0);
    await finish('r3', { entry });
    await runs.deleteOfDeleted();
    expect((await runs.page(SOURCE, { limit: 9 })).total).toBe(0);
  });

  it('list a run that was skipped once', async () => {
    const run = { run_id: 'skipped', source_id: SOURCE, owner_id: ACCOUNT, trigger: 'event' as const };
    for (let n = 0; n < 2; n++) await runs.leaveOut(run, skippedEntry(run, 'over quota', Date.now()));
    const { total, rows } = await runs.page(SOURCE, { limit: 9 });
    expect([total, rows[0]?.status, rows[0]?.error]).toEqual([1, 'skipped', expect.stringContaining('over quota')]);
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
  /** Of this database: others on the same server have such locks, too. */
  const endSessionsWithLocks = () =>
    fresh.database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database
       WHERE datname = current_database() AND locktype = 'advisory' AND granted`,
    );

  it('has one run at a time, and others do not wait for it', async () => {
    const replicas = [1, 2, 3].map(() => new SourceLocks(fresh.database, createLog('test', 'silent')));
    let [running, most] = [0, 0];
    const others = Promise.withResolvers<void>();
    const run = (locks: SourceLocks) =>
      locks.alone(SOURCE, async () => {
        most = Math.max(most, ++running);
        // if the other sources waited for this one, the test would not end
        await others.promise;
        running--;
      });
    const runs = replicas.map(run);
    await Promise.all(replicas.map((locks, n) => locks.alone(`dc_other${n}`, async () => {})));
    others.resolve();
    await Promise.all(runs);
    expect(most).toBe(1);
    await Promise.all(replicas.map((locks) => locks.close()));
  });

  it('has one run at a time in one replica, in order, even after one that failed', async () => {
    const locks = new SourceLocks(fresh.database, createLog('test', 'silent'));
    const seen: string[] = [];
    const run = (name: string) =>
      locks.alone(SOURCE, async () => {
        seen.push(`${name} begins`);
        await fresh.database.query('SELECT pg_sleep(0.02)');
        seen.push(`${name} ends`);
        if (name === 'one') throw new Error('failed');
      });
    const [one] = await Promise.allSettled(['one', 'two', 'three'].map(run));
    expect(one!.status).toBe('rejected');
    expect(seen).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends']);
    await locks.close();
  });

  it('loses its lock when the replica is frozen, while an idle replica keeps its connection', async () => {
    const connect = jest.spyOn(fresh.database, 'connect');
    const locks = new SourceLocks(fresh.database, createLog('test', 'silent'));
    const timeout = async () => {
      const client = (await connect.mock.results[0]!.value) as PoolClient;
      return (await client.query<{ idle_session_timeout: string }>('SHOW idle_session_timeout')).rows[0]!.idle_session_timeout;
    };
    await locks.alone(SOURCE, async () => {
      await locks.alone('dc_other', async () => {});
      expect(await timeout()).toBe('20s');
    });
    expect(await timeout()).toBe('0');
    await locks.alone(SOURCE, async () => expect(await timeout()).toBe('20s'));
    await locks.close();
    connect.mockRestore();
  });

  it('is locked again before a run whose lock was lost stores its outcome, after a check of what it has read', async () => {
    const [one, two] = [1, 2].map(() => new SourceLocks(fresh.database, createLog('test', 'silent')));
    const isFree = async () =>
      (await fresh.database.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 1)) AS free', [SOURCE]))
        .rows[0]!.free;
    const seen: string[] = [];
    const check = async () => void seen.push('checked');
    await one!.alone(SOURCE, async (keepLock) => {
      await keepLock(check);
      expect(seen).toEqual([]);
      await endSessionsWithLocks();
      await two!.alone(SOURCE, async () => void seen.push('another'));
      await expect(keepLock(() => Promise.reject(new Error('outdated')))).rejects.toThrow('outdated');
      await keepLock(check);
      await keepLock(check);
      expect(await isFree()).toBe(false);
    });
    expect([seen, await isFree()]).toEqual([['another', 'checked'], true]);
    await Promise.all([one!.close(), two!.close()]);
  });

  it('is free again when the replica that ran it dies', async () => {
    const [one, two] = [1, 2].map(() => new SourceLocks(fresh.database, createLog('test', 'silent')));
    await one!.alone(SOURCE, async () => {
      const waiting = two!.alone(SOURCE, async () => 'ran');
      await endSessionsWithLocks();
      expect(await waiting).toBe('ran');
    });
    expect(await one!.alone('dc_3', async () => 'reconnected')).toBe('reconnected');
    await Promise.all([one!.close(), two!.close()]);
  });
});

describe('the runs of an event', () => {
  const emitted = { emitterId: 'dc_9' as SourceId, stream: 'default', emitId: 'é\u0000\n' };
  const find = async (owner: UserId = ACCOUNT) => (await runs.findOfEvent(owner, runKeyOf(emitted))).map(({ source_id }) => source_id);
  const deploy = (source: string, owner: string) =>
    fresh.database.query(
      `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
       VALUES ($1, $2, true, 1, 'h', '{}', '{}', 'n')`,
      [source, owner],
    );
  const run = (source_id: SourceId) =>
    ({ run_id: runIdOf(emitted, source_id), source_id, owner_id: ACCOUNT, trigger: 'event', due_at_ms: 1 }) as const;

  it('are those of all sources of the account that have ended or wait', async () => {
    for (const id of ['dc_1', 'dc_2', 'dc_3']) await deploy(id, ACCOUNT);
    await deploy('dc_4', 'u_2');
    await runs.finish(run('dc_1'), NO_EFFECTS);
    await queue.add([run('dc_2')]);
    await runs.finish(run('dc_4'), NO_EFFECTS);
    expect(await find()).toEqual(['dc_1', 'dc_2']);
    expect(await find('u_2')).toEqual(['dc_4']);
    expect(await queue.waiting([run('dc_1').run_id, run('dc_2').run_id])).toEqual(new Set([run('dc_2').run_id]));
  });
});
