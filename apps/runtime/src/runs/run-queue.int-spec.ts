import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { RunRequest, SourceId, UserId } from '#contracts';
import type { EmitterDirectory } from '#emitters';
import { type Consumers, Lanes, type Task } from '#messaging';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import type { FullAccounts, WaitingData } from '#waiting-data';
import { schema } from '../database/schema.js';
import { QueueSignal } from '../queue/queue-signal.js';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { RunLanes } from './run-lanes.js';
import { RunQueue } from './run-queue.js';
import type { RunsService } from './runs.service.js';

const [A, B] = ['dc_a', 'dc_b'] as SourceId[] as [SourceId, SourceId];

/** A different account in each test: a replica of an earlier one may still look for runs of its account. */
let owner: UserId;
let accounts = 0;
let fresh: FreshDatabase;
let queued: QueuedRunsRepository;
let retried: RetriedRunsRepository;
/** The runs in the order in which they began, and the replica of each. */
let begun: string[];
/** Ends runs that have begun. */
let ends: Map<string, () => void>;

beforeAll(async () => {
  fresh = await freshDatabase(schema);
  queued = new QueuedRunsRepository(fresh.database);
  retried = new RetriedRunsRepository(fresh.database);
});
afterAll(() => fresh?.drop());
beforeEach(async () => {
  await fresh.database.query('TRUNCATE queued_run, queue_lease, retried_run, emitter');
  owner = `u_${(accounts += 1)}`;
  [begun, ends] = [[], new Map()];
});

const run = (run_id: string, source_id: SourceId): RunRequest => ({ run_id, owner_id: owner, source_id, trigger: 'event', due_at_ms: 1 });

/** A process of the runtime. The test ends its runs. */
function replica(name: string) {
  const lanes = new Lanes({ concurrency: 32 });
  const start = (task: Task) => lanes.push(task, () => {});
  const consumers = { isStopping: () => false, push: (_: string, task: Task) => start(task) } as unknown as Consumers;
  const runs = {
    execute: async ({ run_id }: RunRequest) => {
      begun.push(`${run_id} in ${name}`);
      await new Promise<void>((resolve) => ends.set(run_id, resolve));
      await queued.remove(run_id);
      return 'ok';
    },
  } as unknown as RunsService;
  const signal = new QueueSignal();
  const queue = new RunQueue(
    queued,
    retried,
    { find: async () => new Map() } as unknown as EmitterDirectory,
    runs,
    new RunLanes(consumers),
    consumers,
    RuntimeConfig.read({}),
    { isFullOf: () => false } as unknown as WaitingData,
    { isFullIn: () => false } as unknown as FullAccounts,
    signal,
    createLog('test', 'silent'),
  );
  const consume = async (...due: RunRequest[]) => (await queue.plan(due)).flat().forEach(start);
  return { queue, signal, consume };
}

/** Waits until these runs have begun, and no other. */
async function began(...expected: string[]): Promise<void> {
  while (begun.length < expected.length) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(begun).toEqual(expected);
}

it('a run in progress, and the later ones of its source, are left to their replica by the one that executes the queue of the account', async () => {
  const [one, two] = [replica('one'), replica('two')];
  await two.consume(run('a1', A));
  await began('a1 in two');
  // a change of another source, whose hook the first replica executes
  await queued.add([run('hook', B)]);
  await one.signal.runsWait(owner);
  await began('a1 in two', 'hook in one');
  await two.consume(run('a2', A), run('b1', B));
  ends.get('hook')?.();
  await one.queue.look();
  await began('a1 in two', 'hook in one', 'b1 in one');
  await two.queue.look();
  ends.get('a1')?.();
  ends.get('b1')?.();
  while (begun.length < 4) await Promise.all([one.queue.look(), two.queue.look()]);
  expect(begun.slice(0, 3)).toEqual(['a1 in two', 'hook in one', 'b1 in one']);
  expect(begun.slice(3)).toEqual([expect.stringMatching(/^a2 in /)]);
  ends.get('a2')?.();
});

it('runs of a source begin although others of its account have many runs that wait, one after another', async () => {
  const { consume } = replica('one');
  const slow = Array.from({ length: 60 }, (_, n) => run(`slow ${n}`, `dc_${n % 6}`));
  await consume(...slow);
  const begunFirst = slow.slice(0, 6).map(({ run_id }) => `${run_id} in one`);
  await began(...begunFirst);
  await consume(run('b1', B), run('b2', B));
  await began(...begunFirst, 'b1 in one');
  ends.get('b1')?.();
  await began(...begunFirst, 'b1 in one', 'b2 in one');
});

it('a hook begins before the runs of its source that wait in lanes or in the database', async () => {
  const { consume, signal } = replica('one');
  await consume(...Array.from({ length: 40 }, (_, n) => run(`a${n}`, A)));
  await began('a0 in one');
  await queued.add([{ ...run('hook', A), hook: {} as RunRequest['hook'] }]);
  await signal.runsWait(owner);
  ends.get('a0')?.();
  await began('a0 in one', 'hook in one');
  ends.get('hook')?.();
  await began('a0 in one', 'hook in one', 'a1 in one');
});

it('a further attempt of a run whose source is inactive is dropped for good', async () => {
  await fresh.database.query(
    "INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms) VALUES ($1, $2, 'source', false, false, 1, 1)",
    [A, owner],
  );
  // a run that ended while its source was switched off
  const attempt: RunRequest = { ...run('a1~2', A), retry: { first_run_id: 'a1', attempt: 2 } };
  await fresh.database.query(
    'INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request) VALUES ($1, $2, $3, now(), $4)',
    ['a1', A, owner, attempt],
  );
  await replica('one').consume(attempt);
  expect(await retried.pending(['a1'])).toEqual(new Set());
});
