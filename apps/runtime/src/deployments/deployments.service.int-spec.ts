import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Deployment, EmitterState, SourceId, UserId } from '#contracts';
import { SecretBox } from '#secrets';
import { type FreshDatabase, freshDatabase, untilLocked } from '#testing';
import { schema } from '../database/schema.js';
import { QueueSignal } from '../queue/queue-signal.js';
import { QueuedRun, QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { DeploymentsRepository } from './deployments.repository.js';
import { DeploymentsService } from './deployments.service.js';

const OWNER = 'u_1' as UserId;
const EVERY_MINUTE: Deployment['schedules'] = { timer: { interval_seconds: 60, cron: null } };

let db: FreshDatabase;
let service: DeploymentsService;
let signalled: UserId[];
let forgotten: string[];
beforeAll(async () => {
  db = await freshDatabase(schema);
  const { database } = db;
  const signal = new QueueSignal();
  signal.listen(async (owner) => void signalled.push(owner));
  service = new DeploymentsService(
    new DeploymentsRepository(database),
    new TimersRepository(database),
    new QueuedRunsRepository(database),
    signal,
    new RetriedRunsRepository(database),
    new SourceStateRepository(database),
    new SecretBox([]),
    { forget: (...source: string[]) => void forgotten.push(source.join(' ')) } as unknown as Sandbox,
  );
});
afterAll(() => db.drop());
beforeEach(async () => {
  await db.database.query('TRUNCATE deployment, timer, queued_run CASCADE');
  signalled = [];
  forgotten = [];
});

const state = (id: string, version: number, deployment: Partial<Deployment> = {}, more: Partial<EmitterState> = {}): EmitterState => ({
  ...{ emitter_id: id as SourceId, kind: 'source', owner_id: OWNER, active: true, deleted: false, version, name: id, created_at_ms: 1 },
  deployment: { code_hash: 'old', configured_props: {}, schedules: {}, endpoint_key: null, name_slug: id, ...deployment },
  ...more,
});
const apply = (states: EmitterState[], first: (id: string) => boolean = () => false) =>
  db.database.transaction((transaction) =>
    service.emittersChanged(
      transaction,
      states.map((each) => ({ state: each, first: first(each.emitter_id) })),
    ),
  );
/** The queued runs of hooks, in their order: source, method, and the version and the code with which it runs. */
const hooks = async () =>
  (await db.database.rows(QueuedRun).find({ order: { seq: 'ASC' } })).map(({ source_id, request }) => {
    const { method, version, deployment } = request.hook!;
    return [source_id, method, version, deployment.code_hash];
  });
const timers = async () =>
  (await db.database.query<{ source_id: string; at: Date }>('SELECT source_id, next_run_at AS at FROM timer ORDER BY source_id')).rows;
const deployed = async () =>
  (
    await db.database.query<{ id: string; version: number; code: string; active: boolean }>(
      'SELECT source_id AS id, version, code_hash AS code, active FROM deployment ORDER BY source_id',
    )
  ).rows.map(({ id, version, code, active }) => [id, version, code, active]);

describe('changes of several sources in one transaction', () => {
  beforeEach(async () => {
    await apply(
      ['dc_1', 'dc_2', 'dc_3', 'dc_4'].map((id) => state(id, 1, { schedules: EVERY_MINUTE })),
      () => true,
    );
    await db.database.query('TRUNCATE queued_run');
    signalled = [];
  });

  it('each run the hooks of their own source, from its state before to its state after', async () => {
    const [, , third] = await timers();
    const newCode = { code_hash: 'new', schedules: EVERY_MINUTE };
    await apply(
      [
        state('dc_1', 2, newCode),
        state('dc_2', 3),
        state('dc_3', 4, { name_slug: 'renamed', schedules: EVERY_MINUTE }),
        state('dc_4', 5, { schedules: EVERY_MINUTE }, { active: false }),
        state('dc_5', 6, newCode),
      ],
      (id) => id === 'dc_5',
    );
    expect(await hooks()).toEqual([
      ['dc_1', 'deactivate', 1, 'old'],
      ['dc_1', 'activate', 2, 'new'],
      ['dc_2', 'deactivate', 1, 'old'],
      ['dc_2', 'activate', 3, 'old'],
      ['dc_4', 'deactivate', 1, 'old'],
      ['dc_5', 'deploy', 6, 'new'],
      ['dc_5', 'activate', 6, 'new'],
    ]);
    expect(await deployed()).toEqual([
      ['dc_1', 2, 'new', true],
      ['dc_2', 3, 'old', true],
      ['dc_3', 4, 'old', true],
      ['dc_4', 5, 'old', false],
      ['dc_5', 6, 'new', true],
    ]);
    expect((await timers()).map(({ source_id }) => source_id)).toEqual(['dc_1', 'dc_3', 'dc_5']);
    expect((await timers())[1]).toEqual(third);
    expect(signalled).toContain(OWNER);
    // what the runs of changed ones left running
    expect(forgotten.sort()).toEqual(['u_1 dc_1', 'u_1 dc_2', 'u_1 dc_4']);
  });

  it.each([
    ['in a fact', {}],
    ['if the catalog does not have it any more', { deployment: undefined }],
  ])('remove what belongs to a source that is deleted %s, and nothing of the others', async (_, unknown) => {
    await apply([{ ...state('dc_1', 2, {}, { active: false, deleted: true }), ...unknown }, state('dc_2', 2, { schedules: EVERY_MINUTE })]);
    expect(await hooks()).toEqual([['dc_1', 'deactivate', 1, 'old']]);
    expect((await deployed()).map(([id]) => id)).toEqual(['dc_2', 'dc_3', 'dc_4']);
    expect((await timers()).map(({ source_id }) => source_id)).toEqual(['dc_2', 'dc_3', 'dc_4']);
  });

  it('do not lock what the end of a run changes while the waiting events of a deleted source are deleted', async () => {
    const { database } = db;
    await database.query(
      `INSERT INTO waiting_emit (emit_id, source_id, account_id, due_at, headers, value) VALUES ('e', 'dc_1', 'u_1', now(), '{}', '')`,
    );
    await database.query(
      `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request, requested_at)
       VALUES ('r', 'dc_1', 'u_1', now(), '{}', now())`,
    );
    let deletion: Promise<unknown> = Promise.resolve();
    // stands for a deletion that takes minutes
    await database.transaction(async (transaction) => {
      await transaction.query('SELECT FROM waiting_emit FOR UPDATE');
      deletion = apply([state('dc_1', 2, {}, { active: false, deleted: true })]);
      await untilLocked(db);
      await database.query("SELECT FROM timer WHERE source_id = 'dc_1' FOR UPDATE NOWAIT");
      await database.query("SELECT FROM retried_run WHERE source_id = 'dc_1' FOR UPDATE NOWAIT");
    });
    await deletion;
    expect((await database.query('SELECT FROM retried_run')).rows).toEqual([]);
  });

  it('set timers by the clock of the database', async () => {
    jest.useFakeTimers({ now: Date.now() + 86_400_000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'performance'] });
    await apply([state('dc_5', 1, { schedules: EVERY_MINUTE })], () => true).finally(() => void jest.useRealTimers());
    const { rows } = await db.database.query(
      "SELECT FROM timer WHERE source_id = 'dc_5' AND next_run_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'",
    );
    expect(rows).toHaveLength(1);
  });

  it('are not of workflows, which are not deployed', async () => {
    const before = await deployed();
    await apply([state('p_1', 2, {}, { kind: 'workflow', deployment: undefined })]);
    expect([await deployed(), await hooks()]).toEqual([before, []]);
  });
});
