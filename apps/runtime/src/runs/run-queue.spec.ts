import { beforeEach, expect, it } from '@jest/globals';
import { listFullInRouting, listFullInRuntime, type RunRequest, type SourceId, Unavailable, type UserId } from '#contracts';
import type { EmitterDirectory } from '#emitters';
import type { Consumers, Task } from '#messaging';
import { createLog } from '#observability';
import type { FullAccounts, WaitingData } from '#waiting-data';
import { NEXT_BYTES, type QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import type { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import type { QueueSignal } from '../queue/queue-signal.js';
import { RuntimeConfig } from '../runtime.config.js';
import { type RunLanes } from './run-lanes.js';
import { RunQueue } from './run-queue.js';
import type { RunsService } from './runs.service.js';

const [ALICE, BOB] = ['u_alice', 'u_bob'] as UserId[] as [UserId, UserId];

/** Learns emitters; while it is undefined, the catalog does not respond. */
let find: ((ids: string[]) => void) | undefined;
/** The sources that the service does not know. */
let unknown: SourceId[];
let atATime: Partial<Record<SourceId, number>>;
/** Sources that are deleted or inactive. */
let inactive: SourceId[];
/** The runs that were dropped. */
let dropped: RunRequest[];
let fullInRouting: boolean;
let fullInRuntime: boolean;
let fullOfEmits: boolean;
let queued: RunRequest[];
/** The size of each run that waits. */
let bytes: number;
/** The accounts of which the next runs were read. */
let filled: UserId[];
/** The lanes of the runs from the database. */
let pushed: string[];
/** Ends the runs from the database, without executing them. */
let drops: (() => void)[];
/** The runs that were held for longer, or no longer. */
let held: [string[], number][];
let queue: RunQueue;

beforeEach(() => {
  [fullInRouting, fullInRuntime, fullOfEmits] = [false, false, false];
  [queued, pushed, held, drops, filled] = [[], [], [], [], []];
  bytes = 100;
  [unknown, find] = [[], undefined];
  [inactive, dropped] = [[], []];
  atATime = {};
  const rows: Partial<QueuedRunsRepository> = {
    conditions: async () => ({
      inactive: new Set(inactive),
      waiting: new Set(queued.map(({ owner_id }) => owner_id)),
      unknown,
      atATime,
    }),
    reportDropped: async (runs) => void dropped.push(...runs),
    add: async (runs) => void queued.push(...runs),
    lease: async () => true,
    next: async (id, taken, { hooks, runs }) => {
      filled.push(id);
      const waiting = queued.filter(({ owner_id, run_id }) => owner_id === id && !taken.includes(run_id));
      const ofHooks = waiting.filter(({ hook }) => hook).slice(0, hooks);
      const others = waiting.filter(({ hook }) => !hook).slice(0, runs);
      const next = [...ofHooks, ...others].slice(0, Math.ceil(NEXT_BYTES / bytes));
      return next.map((request) => ({ request, bytes, at_a_time: atATime[request.source_id] ?? 1 }));
    },
    release: async () => {},
    hold: async (ids, _, seconds) => void held.push([ids, seconds]),
    accountsWaiting: async () =>
      [...Map.groupBy(queued, ({ owner_id }) => owner_id)].map(([id, runs]) => ({
        id,
        has_hooks: runs.some(({ hook }) => hook !== undefined),
      })),
  };
  const look = async (ids: string[]) => {
    if (!find) throw new Unavailable('away');
    find(ids);
  };
  const directory = { find: look } as unknown as EmitterDirectory;
  const push = (_: string, { lane, drop }: Task) => {
    pushed.push(lane);
    if (drop) drops.push(drop);
  };
  const consumers = { isStopping: () => false, push } as unknown as Consumers;
  const own = { isFullOf: (table: string, id: UserId) => fullOfEmits && table === 'waiting_emit' && id === ALICE } as WaitingData;
  const full = {
    isFullIn: ({ name }, id) =>
      id === ALICE && ((name === listFullInRouting.name && fullInRouting) || (name === listFullInRuntime.name && fullInRuntime)),
  } as FullAccounts;
  const lanes = { laneOf: (_: RunRequest, n: number) => ({ lane: `one of ${n}`, group: 'a' }) } as unknown as RunLanes;
  queue = new RunQueue(
    rows as QueuedRunsRepository,
    { leaveOut: async () => {} } as unknown as RetriedRunsRepository,
    directory,
    {} as RunsService,
    lanes,
    consumers,
    RuntimeConfig.read({}),
    own,
    full,
    { listen: () => {} } as unknown as QueueSignal,
    createLog('test', 'silent'),
  );
});

const run = (owner_id: UserId): RunRequest => ({ run_id: `of ${owner_id}`, owner_id, source_id: 'dc_1', trigger: 'timer', due_at_ms: 1 });
/** The accounts whose runs start. */
const started = async () => {
  const due = [run(ALICE), run(BOB)];
  const tasks = await queue.plan(due);
  return due.filter((_, index) => tasks[index]!.length > 0).map(({ owner_id }) => owner_id);
};
const settled = () => new Promise((resolve) => setImmediate(resolve));

it.each<[string, () => void]>([
  ['deliveries', () => (fullInRouting = true)],
  ['waiting emits', () => (fullOfEmits = true)],
])('a run of an account that is full of %s waits until it is no longer full; those of others start', async (_, fill) => {
  fill();
  expect(await started()).toEqual([BOB]);
  expect(queued).toEqual([run(ALICE)]);
  await queue.look();
  await settled();
  expect(pushed).toEqual([]);
  [fullInRouting, fullOfEmits] = [false, false];
  await queue.look();
  await settled();
  expect(pushed).toEqual(['one of 1']);
});

it('the hooks of an account that is full start: they clean up in other systems', async () => {
  fullInRouting = true;
  queued = [run(ALICE), { ...run(ALICE), run_id: 'hook', hook: {} as RunRequest['hook'] }];
  await queue.look();
  await settled();
  expect(pushed).toEqual(['one of 1']);
});

it('takes hooks although as many other runs of the account as it takes are in lanes, and at most 256', async () => {
  const wait = (count: number, prefix: string, more: Partial<RunRequest>) =>
    queued.push(...Array.from({ length: count }, (_, n) => ({ ...run(ALICE), run_id: `${prefix} ${n}`, ...more })));
  wait(60, 'run', {});
  await queue.look();
  await settled();
  expect(pushed.splice(0)).toHaveLength(48);
  wait(300, 'hook', { hook: {} as RunRequest['hook'] });
  await queue.look();
  await settled();
  expect(pushed).toHaveLength(256);
});

it('takes fewer runs of each account the more accounts have some, at least one', async () => {
  const fill = async (accounts: number) => {
    queued = Array.from({ length: accounts * 60 }, (_, n) => ({ ...run(`u_${accounts}-${n % accounts}`), run_id: `${accounts} ${n}` }));
    await queue.look();
    await settled();
    return pushed.splice(0).length;
  };
  expect(await fill(1)).toBe(48);
  expect(await fill(63)).toBe(63 * 16);
  expect(await fill(2000)).toBe(2000);
});

it('takes large runs in several statements, and one of each account while those of all accounts have 64 MiB', async () => {
  bytes = 1024 ** 2;
  const wait = (account: UserId) => queued.push(...Array.from({ length: 60 }, (_, n) => ({ ...run(account), run_id: `${account} ${n}` })));
  wait(ALICE);
  await queue.look();
  await settled();
  expect(pushed.splice(0)).toHaveLength(48);
  wait(BOB);
  wait('u_carol');
  await queue.look();
  await settled();
  // each account may exceed it by what one statement returns
  const { length } = pushed.splice(0);
  expect(length).toBeGreaterThanOrEqual(16);
  expect(length).toBeLessThanOrEqual(16 + 4);
  wait('u_dave');
  await queue.look();
  await settled();
  expect(pushed.splice(0)).toHaveLength(1);
  queued = [];
  for (const drop of drops.splice(0)) drop();
  await settled();
  wait('u_erin');
  await queue.look();
  await settled();
  expect(pushed).toHaveLength(48);
});

it('a run in progress that is queued is held as long as it is in progress here', async () => {
  const [direct] = await queue.plan([run(ALICE)]);
  fullOfEmits = true;
  await queue.plan([{ ...run(ALICE), run_id: 'later' }]);
  expect(queued.map(({ run_id }) => run_id)).toEqual(['later']);
  await queue.look();
  direct![0]!.drop?.();
  await queue.look();
  const id = run(ALICE).run_id;
  expect(held).toEqual([
    [[id], 15],
    [[id], 0],
  ]);
});

it('the first run of a source whose fact has not arrived waits behind the runs of its hooks', async () => {
  unknown = ['dc_1'];
  const hook = { ...run(ALICE), run_id: 'hook' };
  find = (ids) => {
    queued.push(hook);
    unknown = unknown.filter((id) => !ids.includes(id));
  };
  expect(await started()).toEqual([BOB]);
  expect(queued).toEqual([hook, run(ALICE)]);
});

it('runs of a source whose fact has not arrived start while the catalog does not respond, and wait in their lanes', async () => {
  unknown = ['dc_1'];
  expect(await started()).toEqual([ALICE, BOB]);
});

it('runs of an account start although its waiting runs make it full: they empty the queue', async () => {
  fullInRuntime = true;
  expect(await started()).toEqual([ALICE, BOB]);
});

it('runs of a source that allows several at a time share that many lanes, whether they waited or not', async () => {
  atATime = { dc_1: 3 };
  const [[task] = []] = await queue.plan([run(ALICE)]);
  expect(task?.lane).toBe('one of 3');
  queued.push(run(BOB));
  await queue.look();
  await settled();
  expect(pushed).toEqual(['one of 3']);
});

it('a run of a deleted or inactive source does not start, and is reported as dropped', async () => {
  const due = ['dc_1', 'dc_2', 'dc_3'].map((source_id) => ({ ...run(ALICE), run_id: source_id, source_id: source_id as SourceId }));
  inactive = ['dc_1', 'dc_2'];
  const tasks = await queue.plan(due);
  expect(tasks.map(({ length }) => length)).toEqual([0, 0, 1]);
  expect(dropped).toEqual([due[0], due[1]]);
});

it('a look reads the next runs only of accounts whose lanes are not full, or of which hooks wait', async () => {
  const of = (owner_id: UserId, count: number) =>
    Array.from({ length: count }, (_, n) => ({ ...run(owner_id), run_id: `${owner_id} ${n}` }));
  queued = [...of(ALICE, 100), ...of(BOB, 10)];
  await queue.look();
  await settled();
  filled = [];
  await queue.look();
  await settled();
  expect(filled).toEqual([BOB]);
  queued.push({ ...run(ALICE), run_id: 'hook', hook: { name: 'activate', version: 1 } as never });
  await queue.look();
  await settled();
  expect(filled).toContain(ALICE);
  expect(pushed).toHaveLength(48 + 10 + 1);
});
