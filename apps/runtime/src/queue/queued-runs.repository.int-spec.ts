import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RunRequest, SourceId, UserId } from '#contracts';
import type { Transaction } from '#database';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { DELETE_RUNS_OF_SOURCE, type NextRuns, QueuedRunsRepository, TAKEN_PER_SOURCE } from './queued-runs.repository.js';

const [ALICE, BOB] = ['u_alice', 'u_bob'] as UserId[] as [UserId, UserId];
const [A, B] = ['dc_a', 'dc_b'] as SourceId[] as [SourceId, SourceId];

let fresh: FreshDatabase;
let queue: QueuedRunsRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schema);
  queue = new QueuedRunsRepository(fresh.database);
});
afterAll(() => fresh?.drop());
beforeEach(() => fresh.database.query('TRUNCATE queued_run, queue_lease, emitter, deployment, outbox, run_done CASCADE'));

const run = (run_id: string, source_id = A, more: Partial<RunRequest> = {}): RunRequest => ({
  run_id,
  owner_id: ALICE,
  source_id,
  trigger: 'manual',
  due_at_ms: 1,
  ...more,
});
const hookOf = (source_id: SourceId, run_id: string): RunRequest =>
  run(run_id, source_id, { hook: { method: 'deactivate', version: 1, deployment: {}, final: true } as unknown as RunRequest['hook'] });
const manyOf = (source_id: SourceId, count: number, prefix: string): RunRequest[] =>
  Array.from({ length: count }, (_, n) => run(`${prefix}${n}`, source_id));
const next = (taken: string[] = [], more: Partial<NextRuns> = {}) =>
  queue.next(ALICE, taken, { replica: 'one', hooks: 8, runs: 32, further: 32, after: '', ...more });
const ids = async (...args: Parameters<typeof next>) => (await next(...args)).map(({ request }) => request.run_id);
/** The events on `$errors`, as they will be produced. */
const reports = async () => {
  const { rows } = await fresh.database.query<{ value: Buffer; headers: Record<string, string> }>(
    'SELECT value, headers FROM outbox ORDER BY id',
  );
  return rows.map(({ value, headers }) => {
    const { error, original_event: event } = JSON.parse(String(value)) as {
      error: { code: string; message: string };
      original_event: unknown;
    };
    return { id: headers.ce_id, code: error.code, count: Number(/\d+/.exec(error.message)), event };
  });
};

describe('queued runs', () => {
  it('are returned with the requests that were added', async () => {
    const whole = run('r1', A, { event: '{"a":"\\u00e9"}', hops: 2 });
    await queue.add([whole, run('r2', B)]);
    await queue.add([run('r3')]);
    expect((await next()).map(({ request }) => request)).toEqual([whole, run('r2', B), run('r3')]);
  });

  it('wait once, however often they are added', async () => {
    await queue.add([run('r1'), run('r1'), run('r2')]);
    await queue.add([run('r1')]);
    expect(await ids()).toEqual(['r1', 'r2']);
  });

  it.each([
    ['deleted', (transaction: Transaction, id: SourceId): Promise<unknown> => transaction.query(DELETE_RUNS_OF_SOURCE, [id])],
    ['switched off', (transaction: Transaction, id: SourceId) => queue.removeOfInactive(transaction, id)],
  ])('do not wait for the deletion of a run that comes again while its source is %s', async (_, remove) => {
    await queue.add(Array.from({ length: TAKEN_PER_SOURCE + 1 }, (_, n) => run(`r${n}`)));
    await fresh.database.transaction(async (transaction) => {
      await remove(transaction, A);
      await queue.add([run('b0', B), run(`r${TAKEN_PER_SOURCE}`)]);
      expect(await ids()).toContain('b0');
    });
    expect(await ids()).not.toContain(`r${TAKEN_PER_SOURCE}`);
  });

  it('come in this order: the first run of each source, the second of each, and so on, at most eight of one', async () => {
    await queue.add([...manyOf(A, 50, 'a'), ...manyOf(B, 2, 'b'), ...manyOf('dc_c', 3, 'c')]);
    const inOrder = ['a0', 'b0', 'c0', 'a1', 'b1', 'c1', 'a2', 'c2', 'a3', 'a4', 'a5', 'a6', 'a7'];
    expect(await ids()).toEqual(inOrder);
    expect(await ids([], { runs: 4 })).toEqual(inOrder.slice(0, 4));
    expect(await ids(['a0', 'a1', 'b0'])).toEqual(['c0', 'b1', 'c1', 'a2', 'c2', 'a3', 'a4', 'a5', 'a6', 'a7']);
  });

  it('leave places to the first runs of sources', async () => {
    await queue.add([...manyOf(A, 3, 'a'), ...manyOf(B, 3, 'b'), ...manyOf('dc_c', 3, 'c')]);
    expect(await ids([], { further: 4 })).toEqual(['a0', 'b0', 'c0', 'a1']);
    expect(await ids(['a0', 'b0'], { further: -9 })).toEqual(['c0']);
  });

  it('come in turns of the sources, however many there are, and whatever came first', async () => {
    const sourceOf = (n: number): SourceId => `dc_${String(n).padStart(4, '0')}`;
    await queue.add(Array.from({ length: 150 }, (_, n) => manyOf(sourceOf(149 - n), 2, `${149 - n}-`)).flat());
    const taken: string[] = [];
    let after = '';
    for (let turn = 0; turn < 5; turn++) {
      const runs = await next(taken, { runs: 50, after });
      taken.push(...runs.map(({ request }) => request.run_id));
      after = runs.at(-1)!.request.source_id;
    }
    const each = (nth: number) => Array.from({ length: 150 }, (_, n) => `${n}-${nth}`);
    expect(taken).toEqual([...each(0), ...each(1).slice(0, 2 * 32)]);
  });

  it('come although another replica holds runs of very many sources', async () => {
    const held = Array.from({ length: 100 }, (_, n) => run(`h${n}`, `dc_${String(n).padStart(4, '0')}`));
    await queue.add([run('z0', 'dc_z')], { held: { runs: held, replica: 'two', seconds: 10 } });
    expect(await ids()).toEqual(['z0']);
  });

  it('come after the hooks of the account, which have places besides, and not at all while more hooks wait than may be taken', async () => {
    await queue.add([...manyOf(A, 2, 'a'), run('b0', B), hookOf(B, 'h1'), hookOf(A, 'h2')]);
    expect(await ids()).toEqual(['h1', 'h2', 'a0', 'b0', 'a1']);
    expect(await ids([], { runs: 0 })).toEqual(['h1', 'h2']);
    expect(await ids([], { hooks: 1 })).toEqual(['h1']);
    expect(await ids(['h1', 'h2'], { hooks: 0 })).toEqual([]);
    expect(await ids(['h1', 'h2'], { hooks: 1 })).toEqual(['a0', 'b0', 'a1']);
  });

  it('come a few at a time if they are large, but at least one', async () => {
    const large = (id: string, mebibytes: number) => run(id, A, { event: JSON.stringify('x'.repeat(mebibytes * 1024 ** 2)) });
    await queue.add([large('r1', 1), large('r2', 1), large('r3', 3), large('r4', 1)]);
    expect(await ids()).toEqual(['r1', 'r2']);
    expect(await ids(['r1', 'r2'])).toEqual(['r3']);
    const [last] = await next(['r1', 'r2', 'r3']);
    expect(last?.bytes).toBeGreaterThan(1024 ** 2);
  });

  it('are found by an index if they are hooks, and left to the replica that holds runs of their source', async () => {
    await queue.add([run('r1'), hookOf(A, 'h1'), run('r2', B), hookOf(B, 'h2'), hookOf(A, 'h3')]);
    await queue.add([], { held: { runs: [run('r3')], replica: 'two', seconds: 10 } });
    expect(await ids([], { runs: 0 })).toEqual(['h2']);
    expect(await ids(['h1'], { runs: 0, replica: 'two' })).toEqual(['h2', 'h3']);
    await queue.add(manyOf(A, 5000, 'many'));
    const query = jest.spyOn(fresh.database, 'query');
    await next(['h1']);
    const { text, values } = (query.mock.calls as unknown[][])[0]![0] as { text: string; values: unknown[] };
    query.mockRestore();
    const planOf = async () => {
      const { rows } = await fresh.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE) ${text}`, values);
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    };
    // also of a table of which PostgreSQL knows nothing, because it was empty most of the time
    const plans = [await planOf()];
    await fresh.database.query('ANALYZE queued_run');
    plans.push(await planOf());
    for (const plan of plans) expect(plan).not.toContain('Seq Scan on queued_run');
    expect(plans[1]).toContain('queued_run_hook');
  });

  it('are not returned again while they are taken', async () => {
    await queue.add([run('r1'), run('r2'), run('r3')]);
    const taken = await ids([], { runs: 2 });
    expect(await ids(taken)).toEqual(['r3']);
    await queue.remove(taken[0]!);
    expect(await ids()).toEqual(['r2', 'r3']);
  });

  it('wait beside others of their source', async () => {
    await queue.add([run('r1'), run('r2'), run('r3', B)]);
    expect([await queue.hasOthers(A, []), await queue.hasOthers(A, ['r1']), await queue.hasOthers(A, ['r1', 'r2'])]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('are removed with their source, all but those of its hooks', async () => {
    await queue.add([run('r1'), hookOf(A, 'h1'), run('r2', B)]);
    await fresh.database.query(DELETE_RUNS_OF_SOURCE, [A]);
    expect(await ids()).toEqual(['h1', 'r2']);
  });

  it('are removed when their source becomes inactive and reported as one, all but the few that a replica may have taken', async () => {
    const taken = Array.from({ length: TAKEN_PER_SOURCE }, (_, n) => run(`r${n}`));
    const timer = run('timer', A, { trigger: 'timer' });
    await queue.add([...taken, run('r8'), hookOf(A, 'h1'), run('r9', A, { event: '{"n":9}' }), timer, run('b1', B)], {
      held: { runs: [run('held')], replica: 'two', seconds: 10 },
    });
    await fresh.database.transaction((transaction) => queue.removeOfInactive(transaction, A));
    const { rows: left } = await fresh.database.query<{ run_id: string }>('SELECT run_id FROM queued_run ORDER BY seq');
    expect(left.map(({ run_id }) => run_id)).toEqual(['held', ...taken.map(({ run_id }) => run_id), 'h1', 'b1']);
    expect(await reports()).toEqual([{ id: 'r9', code: 'SourceInactive', count: 2, event: { n: 9 } }]);
    await fresh.database.transaction((transaction) => queue.removeOfInactive(transaction, A));
    expect(await reports()).toHaveLength(1);
  });

  it('are reported once per source, if it is not active when they come, and not if it is deleted', async () => {
    await fresh.database.query(
      "INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms) VALUES ('dc_gone', 'u_alice', 'source', true, true, 1, 1)",
    );
    await fresh.database.query("INSERT INTO run_done (run_id) VALUES ('ended')");
    const due = [
      run('a1'),
      run('b1', B, { trigger: 'timer' }),
      run('a2'),
      run('ended'),
      run('c1', 'dc_c', { event: '1' }),
      run('g1', 'dc_gone'),
    ];
    await queue.reportDropped(due);
    expect(await reports()).toEqual([
      { id: 'a2', code: 'SourceInactive', count: 2, event: null },
      { id: 'c1', code: 'SourceInactive', count: 1, event: 1 },
    ]);
  });

  it('are counted up to a limit', async () => {
    await queue.add(Array.from({ length: 7 }, (_, n) => run(`r${n}`)));
    expect([await queue.count(ALICE, 100), await queue.count(ALICE, 5), await queue.count(BOB, 5)]).toEqual([7, 5, 0]);
  });
});

describe('the state that a batch of runs needs', () => {
  it('consists of the accounts with waiting runs, the sources that are deleted or inactive, and the unknown ones', async () => {
    await fresh.database.query(
      `INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms) VALUES
         ('dc_a', 'u_alice', 'source', false, false, 1, 1), ('dc_b', 'u_alice', 'source', true, false, 1, 1), ('dc_c', 'u_bob', 'source', true, true, 1, 1)`,
    );
    await queue.add([run('r1')]);
    const { inactive, waiting, unknown } = await queue.conditions([A, B, 'dc_c', 'dc_unknown'], [ALICE, BOB]);
    expect([...inactive].sort()).toEqual(['dc_a', 'dc_c']);
    expect([...waiting]).toEqual([ALICE]);
    expect(unknown).toEqual(['dc_unknown']);
  });

  it('includes how many runs of a source may be in progress, also of those that wait', async () => {
    const deployment = {
      owner_id: ALICE,
      active: true,
      version: 1,
      code_hash: 'h',
      configured_props: {},
      schedules: {},
      endpoint_key: null,
    };
    const deployed = (source_id: SourceId, runs_at_a_time?: number) => ({ ...deployment, source_id, name_slug: 's', runs_at_a_time });
    const deployments = new DeploymentsRepository(fresh.database);
    await fresh.database.transaction((transaction) => deployments.put(transaction, [deployed(A, 3), deployed(B, 1), deployed('dc_c')]));
    expect((await queue.conditions([A, B, 'dc_c', 'dc_unknown'], [])).atATime).toEqual({ [A]: 3 });
    expect((await queue.conditions([B], [])).atATime).toEqual({});
    await queue.add([run('r1'), run('r2', B), run('r3', 'dc_c'), run('r4', 'dc_unknown')]);
    expect((await next()).map(({ at_a_time }) => at_a_time)).toEqual([3, 1, 1, 1]);
    // a deployment of an earlier version is completed, but not that of other code, and no other value is overwritten
    for (const [id, code] of [
      ['dc_c', 'other'],
      ['dc_c', 'h'],
      [A, 'h'],
    ] as const)
      await deployments.setRunsAtATime(id, code, code === 'other' ? 9 : 5);
    expect((await queue.conditions([A, 'dc_c'], [])).atATime).toEqual({ [A]: 3, dc_c: 5 });
  });
});

describe('queued runs that are in progress in a replica', () => {
  const hold = (seconds: number) => queue.add([run('a2'), run('b1', B)], { held: { runs: [run('a1')], replica: 'two', seconds } });

  it('are not executed by another one, nor are later runs of their source', async () => {
    await hold(60);
    expect(await ids()).toEqual(['b1']);
    expect(await ids([], { replica: 'two' })).toEqual(['a1', 'b1', 'a2']);
  });

  it('are executed by another one if the replica holds them no longer', async () => {
    await hold(0);
    expect(await ids()).toEqual(['a1', 'b1', 'a2']);
    await queue.hold(['a1', 'a2'], 'one', 60);
    expect(await ids()).toEqual(['a1', 'b1', 'a2']);
    await queue.hold(['a1', 'a2'], 'two', 60);
    expect(await ids()).toEqual(['b1']);
    await queue.releaseAll('one');
    expect(await ids()).toEqual(['b1']);
    await queue.releaseAll('two');
    expect(await ids()).toEqual(['a1', 'b1', 'a2']);
  });

  it('are executed by another one if they were held while the clock of the database was an hour ahead', async () => {
    await hold(3600);
    expect(await ids()).toEqual(['a1', 'b1', 'a2']);
  });

  it('do not hold up others when they have left the queue', async () => {
    await hold(60);
    await queue.remove('a1');
    expect(await ids()).toEqual(['a2', 'b1']);
  });
});

describe('the lease of an account', () => {
  it('belongs to one replica until it is released or runs out', async () => {
    expect(await queue.lease(ALICE, 'one', 60)).toBe(true);
    expect(await queue.lease(ALICE, 'one', 60)).toBe(true);
    expect(await queue.lease(ALICE, 'two', 60)).toBe(false);
    await queue.release('one', [ALICE]);
    expect(await queue.lease(ALICE, 'two', 0)).toBe(true);
    expect(await queue.lease(ALICE, 'one', 60)).toBe(true);
  });

  it('ends at once if it was taken while the clock of the database was an hour ahead', async () => {
    await queue.add([run('r1')]);
    await queue.lease(ALICE, 'one', 3600);
    expect(await queue.accountsWaiting('two')).toEqual([{ id: ALICE, has_hooks: false }]);
    expect(await queue.lease(ALICE, 'two', 60)).toBe(true);
    expect(await queue.lease(ALICE, 'one', 60)).toBe(false);
  });

  it('hides the account from other replicas that look for waiting runs', async () => {
    const [alice, bob] = [
      { id: ALICE, has_hooks: true },
      { id: BOB, has_hooks: false },
    ];
    await queue.add([run('r1'), hookOf(A, 'h1'), run('r2', A, { owner_id: BOB })]);
    await queue.lease(ALICE, 'one', 60);
    expect(await queue.accountsWaiting('two')).toEqual([bob]);
    expect(new Set(await queue.accountsWaiting('one'))).toEqual(new Set([alice, bob]));
    await queue.releaseAll('one');
    expect(new Set(await queue.accountsWaiting('two'))).toEqual(new Set([alice, bob]));
  });
});
