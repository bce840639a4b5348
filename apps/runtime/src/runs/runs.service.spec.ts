import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { NotFound, type RunRequest, switchOffSource, TimedOut, Unavailable } from '#contracts';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import { createLog, LOG, type Log } from '#observability';
import { Stats } from '#stats';
import { FakeMessages } from '#testing';
import { CodeCache } from '../components/code-cache.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { DeployedSources } from '../deployments/deployed-sources.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { Quotas } from '../quotas/quotas.js';
import { RuntimeConfig } from '../runtime.config.js';
import { CLOSED, type RunOutcome } from '../sandbox/sandbox.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import type { RunEffects } from './run-effects.js';
import { RunLanes } from './run-lanes.js';
import { RunResults } from './run-results.js';
import { RunSources } from './run-sources.js';
import { RunsRepository } from './runs.repository.js';
import { RunsService, type RunWatch } from './runs.service.js';
import { SandboxRuns } from './sandbox-runs.js';
import { SourceLocks } from './source-locks.js';

const RUN: RunRequest = {
  ...{ run_id: 'r', source_id: 'dc_1', owner_id: 'u_1' },
  ...{ trigger: 'event', event: '{"n":1}', due_at_ms: 1 },
};
const DEPLOYED = {
  ...RUN,
  active: true,
  version: 1,
  code_hash: 'h',
  configured_props: {},
  schedules: {},
  kills_in_row: 0,
  runs_at_a_time: 1,
};

interface Fakes {
  get: () => Promise<unknown>;
  finish?: (run: unknown, effects: RunEffects, ready?: () => Promise<void>) => Promise<boolean>;
  done?: Pick<RunsRepository, 'resumeTimer'>;
  deployed?: Partial<DeploymentRow>;
  messages?: FakeMessages;
  spendOn?: (work: string, account: string, units: number) => void;
  runTurn?: () => Promise<void>;
  execute?: () => Promise<RunOutcome>;
  log?: Log;
  state?: Partial<SourceStateRepository>;
  locks?: Pick<SourceLocks, 'alone'>;
  quotas?: Partial<Quotas>;
  leaveOut?: RunsRepository['leaveOut'];
}

const unexpected = (): never => {
  throw new Error('called for a run that does not begin');
};

const serviceWith = async ({ get, finish, done, deployed, execute, ...others }: Fakes) => {
  const { messages = new FakeMessages(), spendOn = () => {}, runTurn = async () => {}, log = createLog('test', 'silent') } = others;
  const module = await Test.createTestingModule({
    providers: [
      ...[RunsService, RunSources, RunResults],
      { provide: CodeCache, useValue: { get } },
      { provide: DeployedSources, useValue: { find: async () => ({ ...DEPLOYED, ...deployed }) as DeploymentRow } },
      { provide: RunsRepository, useValue: { isDone: async () => done !== undefined, finish, leaveOut: others.leaveOut, ...done } },
      { provide: AccountPace, useValue: { runTurn, spend: () => {}, spendOn } },
      { provide: Quotas, useValue: { counted: false, allow: async () => true, ...others.quotas } },
      { provide: Stats, useValue: { countEnded: () => {} } },
      { provide: RuntimeConfig, useValue: RuntimeConfig.read({}) },
      { provide: LOG, useValue: log },
      { provide: RunLanes, useValue: { learn: () => {} } },
      { provide: SandboxRuns, useValue: { execute } },
      { provide: Messages, useValue: messages },
      { provide: DeploymentsRepository, useValue: {} },
      { provide: SourceStateRepository, useValue: others.state ?? {} },
      { provide: SourceLocks, useValue: others.locks ?? {} },
    ],
  }).compile();
  return module.get(RunsService);
};

const serviceWithCode = (get: () => Promise<never>, stored: RunEffects[]) =>
  serviceWith({ get, finish: async (_, effects) => stored.push(effects) > 0 });

it('fails a run whose code the catalog does not have, and reports it with the event', async () => {
  const stored: RunEffects[] = [];
  const service = await serviceWithCode(() => Promise.reject(new NotFound('code', 'h')), stored);
  expect(await service.execute(RUN)).toBe('threw');
  const [{ entry, records }] = stored as [RunEffects];
  expect(entry).toMatchObject({ status: 'failed', error: expect.stringContaining('CodeNotFound') });
  expect(JSON.parse(String(records[0]!.value))).toMatchObject({ error: { code: 'CodeNotFound' }, original_event: { n: 1 } });
});

it('leaves a run to be repeated while the catalog does not reply', async () => {
  const stored: RunEffects[] = [];
  const service = await serviceWithCode(() => Promise.reject(new TimedOut('catalog')), stored);
  await expect(service.execute(RUN)).rejects.toThrow(TimedOut);
  expect(stored).toEqual([]);
});

it.each([
  ['has not begun', undefined],
  ['has ended', { resumeTimer: async () => {} }],
] as const)('switches a source off first whose earlier runs should have done so, when a run of it %s', async (_, done) => {
  const messages = new FakeMessages().replyTo(switchOffSource, () => true);
  const get = async () => ({ component: { hash: 'h', code: '' }, description: {} });
  const service = await serviceWith({ get, done, messages, deployed: { kills_in_row: 3, version: 7 } });
  await expect(service.execute(RUN)).rejects.toThrow(Unavailable);
  expect(messages.requests).toMatchObject([{ payload: { id: RUN.source_id, owner_id: RUN.owner_id, version: 7 } }]);
});

it.each([
  ['resumes the timer of a tick that comes again after its run', 'timer', ['dc_1 r']],
  ['does nothing for an event that comes again after its run', 'event', []],
] as const)('%s', async (_, trigger, expected) => {
  const resumed: string[] = [];
  const get = async () => ({ component: { hash: 'h', code: '' }, description: {} });
  const service = await serviceWith({ get, done: { resumeTimer: async (...ids) => void resumed.push(ids.join(' ')) } });
  expect(await service.execute({ ...RUN, trigger })).toBeNull();
  expect(resumed).toEqual(expected);
});

describe('a run that the end of the service has interrupted', () => {
  const outcome: RunOutcome = {
    ...{ status: 'killed', error: { name: 'SandboxError', code: CLOSED, message: 'stopped', stack: '' }, emits: [], logs: [], db: {} },
    ...{ wallMs: 1, cpuMs: 1, mainMs: 0, responded: false },
  };
  const description = { dedupe: null, concurrency: 1, hooks: [], configurable_props: [] };
  const interrupted = async (watch: RunWatch, ended = outcome) => {
    const stored: RunEffects[] = [];
    const service = await serviceWith({
      get: async () => ({ component: { hash: 'h', code: '' }, description }),
      finish: async (_, effects) => stored.push(effects) > 0,
      execute: async () => ended,
    });
    const result = await service.execute(RUN, watch).catch((error: Error) => error);
    return { result, stored };
  };

  it('is not stored, so that it is repeated', async () => {
    const { result, stored } = await interrupted({ onOutcome: () => {} });
    expect([result, stored]).toEqual([expect.any(Unavailable), []]);
  });

  it('is stored as it ended if it responds to a request itself: nobody would repeat it', async () => {
    const { result, stored } = await interrupted({ onRespond: () => {} });
    expect([result, stored]).toMatchObject(['killed', [{ entry: { status: 'killed' } }]]);
  });

  it('is not one whose component throws an error with the same code, which would be repeated forever', async () => {
    const { result, stored } = await interrupted({ onOutcome: () => {} }, { ...outcome, status: 'threw' });
    expect([result, stored]).toMatchObject(['threw', [{ entry: { status: 'failed' } }]]);
  });
});

describe('a run whose lock is lost while its code runs', () => {
  const storedWith = async (
    states: Record<string, string>[],
    watch: RunWatch = {},
    { failures = [], responded = false }: { failures?: Error[]; responded?: boolean } = {},
  ) => {
    const outcome: RunOutcome = {
      ...{ status: 'ok', error: null, emits: [], logs: [], db: { n: '2' } },
      ...{ wallMs: 1, cpuMs: 1, mainMs: 0, responded },
    };
    const stored: unknown[] = [];
    const service = await serviceWith({
      get: async () => ({
        component: { hash: 'h', code: '' },
        description: { dedupe: null, concurrency: 1, hooks: [], configurable_props: [{ name: 'db', type: '$.service.db' }] },
      }),
      finish: async (_, { db }, ready) => {
        await ready?.();
        const failure = failures.shift();
        if (failure) throw failure;
        return stored.push(db) > 0;
      },
      execute: async () => outcome,
      state: { loadDb: async () => states.shift()! },
      locks: { alone: (_, work) => work((check) => check()) },
    });
    const result = await service.execute(RUN, watch).catch((error: Error) => error);
    return { result, stored };
  };

  it('is stored if no other run has changed the state meanwhile', async () => {
    expect(await storedWith([{ n: '1' }, { n: '1' }])).toEqual({ result: 'ok', stored: [{ n: '2' }] });
  });

  it.each([
    ['a run for an event', {}],
    ['a run that responds to a request', { onRespond: () => {} }],
  ])('is not stored if another run has changed the state meanwhile: %s', async (_, watch) => {
    expect(await storedWith([{ n: '1' }, { n: '5' }], watch)).toEqual({ result: expect.any(Unavailable), stored: [] });
  });

  it('is not stored if another run changes the state while the database cannot be written', async () => {
    const down = Object.assign(new Error('the server restarts'), { code: '57P01' });
    expect(await storedWith([{ n: '1' }, { n: '1' }, { n: '5' }], {}, { failures: [down] })).toEqual({
      result: expect.any(Unavailable),
      stored: [],
    });
  });

  it('is stored without the state if another run has changed that, and the component has responded', async () => {
    const stored = await storedWith([{ n: '1' }, { n: '5' }], { onRespond: () => {} }, { responded: true });
    expect(stored).toEqual({ result: 'ok', stored: [{}] });
  });
});

describe('a run of an account over its quota', () => {
  const outcome: RunOutcome = {
    ...{ status: 'ok', error: null, emits: [], logs: [], db: {} },
    ...{ wallMs: 1, cpuMs: 1, mainMs: 0, responded: false },
  };
  const description = { dedupe: null, concurrency: 1, hooks: ['activate'], configurable_props: [] };

  async function overQuota(changed: Partial<RunRequest>, watch: RunWatch = {}, isFirst = true) {
    const [skipped, notified]: [unknown[], string[]] = [[], []];
    const service = await serviceWith({
      get: async () => ({ component: { hash: 'h', code: '' }, description }),
      finish: async () => true,
      execute: async () => outcome,
      locks: { alone: (_, work) => work(async () => {}) },
      quotas: { allow: async () => false, notify: async (source) => (notified.push(source), isFirst) },
      leaveOut: async (_, entry) => void skipped.push(entry?.status ?? null),
    });
    const status = await service.execute({ ...RUN, ...changed }, watch);
    return { status, skipped, notified };
  }

  it.each<[string, Partial<RunRequest>]>([
    ['a request to an endpoint', { trigger: 'http' }],
    ['a request of the API', { trigger: 'manual' }],
    [
      'a hook',
      {
        trigger: 'hook',
        hook: { method: 'activate', version: 1, deployment: { ...DEPLOYED }, final: false } as unknown as RunRequest['hook'],
      },
    ],
  ])('is executed if it was accepted before: %s', async (_, changed) => {
    expect(await overQuota(changed)).toEqual({ status: 'ok', skipped: [], notified: [] });
  });

  it.each<[string, Partial<RunRequest>, RunWatch, boolean]>([
    ['an event', { trigger: 'event' }, {}, false],
    ['a request that waits for the response', { trigger: 'http' }, { onRespond: () => {} }, false],
    ['the first tick of the day', { trigger: 'timer' }, {}, true],
  ])('is skipped and listed for %s', async (_, changed, watch, isFirst) => {
    expect(await overQuota(changed, watch, isFirst)).toEqual({ status: null, skipped: ['skipped'], notified: ['dc_1'] });
  });

  it('is not listed for a further tick, which would displace the last runs', async () => {
    expect(await overQuota({ trigger: 'timer' }, {}, false)).toEqual({ status: null, skipped: [null], notified: ['dc_1'] });
  });
});

describe('a run whose client has left', () => {
  it.each([
    ['before the run waits for its turn', true],
    ['while the run waits for its turn', false],
  ])('does not begin, costs nothing and is one line at level debug: %s', async (_, leftBefore) => {
    const lines: unknown[] = [];
    let turns = 0;
    let hasLeft = leftBefore;
    const service = await serviceWith({
      get: async () => ({
        component: { hash: 'h', code: '' },
        description: { dedupe: null, concurrency: 2, hooks: [], configurable_props: [] },
      }),
      runTurn: async () => {
        turns++;
        hasLeft = true;
      },
      ...{ finish: unexpected, execute: unexpected, spendOn: unexpected },
      log: { debug: (fields: object, name: string) => lines.push([name, fields]) } as unknown as Log,
    });
    expect(await service.execute(RUN, { onRespond: () => {}, hasLeft: () => hasLeft })).toBeNull();
    expect(turns).toBe(leftBefore ? 0 : 1);
    expect(lines).toEqual([['run.abandoned', { run_id: 'r', source_id: 'dc_1' }]]);
  });
});

describe('a run that emits', () => {
  const KIB = 1024;

  /** A run that emits nine events of this size: what it costs its account, and whether further runs may begin while its outcome is being stored. */
  async function emitting(bytes: number) {
    const event = JSON.stringify('x'.repeat(bytes));
    const outcome: RunOutcome = {
      ...{ status: 'ok', error: null, emits: Array<{ event: string }>(9).fill({ event }), logs: [], db: {} },
      ...{ wallMs: 1, cpuMs: 1, mainMs: 0, responded: false },
    };
    const description = { dedupe: null, concurrency: 1, hooks: [], configurable_props: [] };
    const spent: number[] = [];
    let isReleased = false;
    let wasReleased = false;
    const service = await serviceWith({
      get: async () => ({ component: { hash: 'h', code: '' }, description }),
      finish: async () => {
        wasReleased = isReleased;
        return true;
      },
      spendOn: (_, account, units) => spent.push(account === RUN.owner_id ? units : NaN),
      execute: async () => outcome,
    });
    expect(await service.execute(RUN, { onOutcome: () => (isReleased = true) })).toBe('ok');
    expect(spent).toHaveLength(1);
    return { units: spent[0]!, wasReleased };
  }

  it('costs its account about a unit per 64 KiB, and occupies its place until large events are stored', async () => {
    const { units, wasReleased } = await emitting(900 * KIB);
    expect(units).toBeGreaterThan(125);
    expect(wasReleased).toBe(false);
  });

  it('frees its place for another run while small events are stored', async () => {
    expect((await emitting(100)).wasReleased).toBe(true);
  });
});
