import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type EmitterState, executeRun, findEndpoints, NotFound, type RunRequest, SluiceError, Unavailable, type UserId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { CodeCache } from '../components/code-cache.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { AccountPace, BYTES_PER_UNIT } from '#fairness';
import { FullAccounts } from '#waiting-data';
import { Quotas } from '../quotas/quotas.js';
import { RunQueue } from '../runs/run-queue.js';
import { RunLanes } from '../runs/run-lanes.js';
import { RunsService, type RunWatch } from '../runs/runs.service.js';
import type { HttpReply, RunStatus } from '../sandbox/sandbox.js';
import { type EndpointResponse, EndpointsService } from './endpoints.service.js';

const KEY = 'abcdefghijklmnop';
/** The key of an endpoint whose source cannot be stored. */
const UNSTORABLE = 'ponmlkjihgfedcba';
const DEPLOYMENT = { source_id: 'dc_1', owner_id: 'u_1', active: true, code_hash: 'h' } as unknown as DeploymentRow;
const EVENT = { event: '{"method":"POST"}', http_body: 'Ym9keQ==' };
const REPLY: HttpReply = { status: 201, headers: {}, body: Buffer.from('made') };

describe('the endpoints of sources', () => {
  let deployed: Map<string, DeploymentRow>;
  let catalog: Map<string, DeploymentRow>;
  let customResponse: boolean;
  let codeError: Error | undefined;
  let isFull: boolean;
  let fullAccount: string | undefined;
  let database: Promise<void> | undefined;
  let isOverQuota: boolean;
  let notified: string[];
  let isItsTurn: boolean;
  let turns: [string, number][];
  let spent: [string, string, number][];
  let reply: HttpReply | undefined;
  let status: RunStatus | null;
  let executed: RunRequest[];
  let messages: FakeMessages;
  let learning: Promise<void> | undefined;
  let service: EndpointsService;
  let closed: PromiseWithResolvers<void>;

  beforeEach(async () => {
    deployed = new Map();
    learning = undefined;
    catalog = new Map();
    closed = Promise.withResolvers();
    customResponse = false;
    codeError = undefined;
    isFull = false;
    fullAccount = undefined;
    database = undefined;
    isOverQuota = false;
    notified = [];
    isItsTurn = true;
    turns = [];
    spent = [];
    reply = undefined;
    status = 'ok';
    executed = [];
    messages = new FakeMessages().replyTo(findEndpoints, ({ endpoint_keys }) =>
      endpoint_keys
        .filter((key) => catalog.has(key))
        .map((key) => ({ emitter_id: key, owner_id: 'u_1', deployment: { endpoint_key: key } }) as unknown as EmitterState),
    );
    const learn = async ({ emitter_id }: EmitterState) => {
      if ((emitter_id as string) === UNSTORABLE) throw new Error('cannot be stored');
      deployed.set(emitter_id, catalog.get(emitter_id)!);
    };
    const execute = async (run: RunRequest, { onRespond, hasLeft }: RunWatch) => {
      if (hasLeft?.()) return null;
      executed.push(run);
      if (reply) onRespond?.(reply);
      return status;
    };
    const description = async () => {
      if (codeError) throw codeError;
      return { configurable_props: [{ name: 'http', type: '$.interface.http', customResponse }] };
    };
    const isAllowed = async () => !isOverQuota;
    const notify = async (source: string) => void notified.push(source);
    const requestTurn = async (account: string, units: number) => (turns.push([account, units]), isItsTurn);
    const spendOn = (work: string, account: string, units: number) => void spent.push([work, account, units]);
    const module = await Test.createTestingModule({
      providers: [
        EndpointsService,
        { provide: DeploymentsRepository, useValue: { findByEndpoint: async (key: string) => (await database, deployed.get(key)) } },
        { provide: EmitterDirectory, useValue: { learn, learnt: async () => learning } },
        { provide: CodeCache, useValue: { description } },
        { provide: RunsService, useValue: { execute } },
        {
          provide: RunLanes,
          useValue: { executeHere: (_run: RunRequest, _atATime: number, run: () => Promise<RunStatus | null>) => run() },
        },
        { provide: RunQueue, useValue: { isFull: async () => (await database, isFull) } },
        { provide: Messages, useValue: messages },
        { provide: Quotas, useValue: { allow: isAllowed, admit: isAllowed, notify } },
        { provide: AccountPace, useValue: { requestTurn, spendOn } },
        { provide: FullAccounts, useValue: { isFull: (id: string) => id === fullAccount } },
      ],
    }).compile();
    service = module.get(EndpointsService);
  });

  /** As the server does. */
  async function handle(deployment = DEPLOYMENT): Promise<EndpointResponse> {
    const admission = await service.admit(deployment);
    if (admission === 'busy') return admission;
    return admission === 'store' ? service.store(deployment, EVENT) : service.runHere(deployment, EVENT, closed.promise);
  }

  it('are not looked up in the catalog while 500 requests with unknown keys wait for it, unless they are known', async () => {
    deployed.set(KEY, DEPLOYMENT);
    const found = Array.from({ length: 501 }, (_, n) => service.find(`unknownendpoint${n}`));
    expect(await found.pop()).toBe('busy');
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(await Promise.all(found)).toEqual(Array(500).fill(undefined));
    expect(await service.find('onemoreendpoint1')).toBeUndefined();
    expect(messages.requests).toHaveLength(2);
  });

  it('are looked up in the catalog every 20 ms at most', async () => {
    const start = performance.now();
    for (const key of ['unknownendpoint1', 'unknownendpoint2', 'unknownendpoint3']) expect(await service.find(key)).toBeUndefined();
    expect(messages.requests).toHaveLength(3);
    // timers count whole milliseconds
    expect(performance.now() - start).toBeGreaterThan(38);
  });

  it('are looked up in the catalog once for requests at the same time', async () => {
    const found = await Promise.all(Array.from({ length: 100 }, () => service.find(KEY)));
    expect(found).toEqual(Array(100).fill(undefined));
    expect(messages.requests).toHaveLength(1);
  });

  it('are found as soon as they exist, although their keys were unknown before', async () => {
    expect(await service.find(KEY)).toBeUndefined();
    deployed.set(KEY, DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
  });

  it('are found by their key', async () => {
    deployed.set(KEY, DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(messages.requests).toEqual([]);
  });

  it('are found in the catalog if their first request overtakes the fact of their creation', async () => {
    catalog.set(KEY, DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(await service.find(KEY)).toBe(DEPLOYMENT);
    expect(messages.requests).toHaveLength(1);
  });

  it('do not ask the catalog again for a key that it does not know, nor for a malformed key', async () => {
    for (const key of [KEY, KEY, '', 'short', 'x'.repeat(65), '../../etc/passwd']) expect(await service.find(key)).toBeUndefined();
    expect(messages.requests).toHaveLength(1);
  });

  it('are found for a source that is not active, so that the response can say so', async () => {
    const paused = { ...DEPLOYMENT, active: false };
    deployed.set(KEY, paused);
    expect(await service.find(KEY)).toBe(paused);
  });

  it('fail when the catalog is down, and query it again', async () => {
    messages.replyTo(findEndpoints, () => {
      throw new Unavailable('away');
    });
    for (let n = 0; n < 2; n++) await expect(service.find(KEY)).rejects.toMatchObject({ code: 'unavailable' });
    expect(messages.requests).toHaveLength(2);
  });

  it('are found although the states of all the sources that requests wait for are too large for one reply', async () => {
    const keys = Array.from({ length: 5 }, (_, n) => `${KEY.slice(0, -1)}${n}`);
    for (const key of keys) catalog.set(key, DEPLOYMENT);
    messages.replyTo(findEndpoints, ({ endpoint_keys }) => {
      if (endpoint_keys.length > 2) throw new SluiceError('unprocessable', 'the response would be larger than 16777216 bytes');
      return endpoint_keys.map(
        (key) => ({ emitter_id: key, owner_id: 'u_1', deployment: { endpoint_key: key } }) as unknown as EmitterState,
      );
    });
    expect(await Promise.all(keys.map((key) => service.find(key)))).toEqual(Array(5).fill(DEPLOYMENT));
  });

  it('are found although that of another request cannot be stored', async () => {
    for (const key of [KEY, UNSTORABLE]) catalog.set(key, DEPLOYMENT);
    const [other, own] = await Promise.allSettled([service.find(UNSTORABLE), service.find(KEY)]);
    expect([messages.requests.length, other, own]).toMatchObject([1, { reason: { message: 'cannot be stored' } }, { value: DEPLOYMENT }]);
  });

  it('are refused while their account is full, before they take a turn', async () => {
    fullAccount = DEPLOYMENT.owner_id;
    await expect(service.turn(DEPLOYMENT.owner_id)).rejects.toThrow('too much data of this account is waiting');
    expect(turns).toEqual([]);
    await service.turn('u_2');
    expect(turns).toHaveLength(1);
  });

  it('take their turn at the pace of their account, and are refused while too many wait', async () => {
    await service.turn(DEPLOYMENT.owner_id);
    expect(turns).toEqual([[DEPLOYMENT.owner_id, 1]]);
    isItsTurn = false;
    await expect(service.turn(DEPLOYMENT.owner_id)).rejects.toMatchObject({ code: 'too_many_requests' });
  });

  it('cost their account the time that they take, and their bytes', () => {
    service.handled(DEPLOYMENT.owner_id, { bytes: 2 * BYTES_PER_UNIT, ms: 30 });
    expect(spent).toEqual([['request', DEPLOYMENT.owner_id, 32]]);
  });

  it('queue the run of a request whose code the catalog does not have, so that its owner gets a report', async () => {
    codeError = new NotFound('code', 'h');
    expect(await handle()).toBe('queued');
    expect(messages.published).toMatchObject([{ payload: EVENT }]);
    codeError = new Unavailable('the catalog does not respond');
    await expect(handle()).rejects.toThrow(Unavailable);
  });

  it('queue a run of each request, with the owner’s key', async () => {
    expect(await handle()).toBe('queued');
    expect(messages.published).toEqual([
      {
        name: executeRun.name,
        key: 'u_1',
        payload: expect.objectContaining({ source_id: 'dc_1', trigger: 'http', ...EVENT }),
      },
    ]);
    expect(executed).toEqual([]);
  });

  it('queue nothing when the account has reached its limit of waiting runs', async () => {
    isFull = true;
    expect(await handle()).toBe('busy');
    expect(messages.published).toEqual([]);
  });

  describe('while the database does not respond', () => {
    let responds: () => void;
    beforeEach(() => {
      ({ promise: database, resolve: responds } = Promise.withResolvers<void>());
      jest.useFakeTimers();
    });
    afterEach(() => void jest.useRealTimers());

    it.each<[string, () => Promise<unknown>]>([
      ['are not found', () => service.find(KEY)],
      ['queue nothing', () => handle()],
    ])('%s, and fail after ten seconds', async (_, work) => {
      const failure = work().catch((error: unknown) => error);
      await jest.advanceTimersByTimeAsync(10_000);
      expect(await failure).toMatchObject({ code: 'unavailable', details: { reason: 'it could not be stored within 10 s' } });
      responds();
      await jest.advanceTimersByTimeAsync(1000);
      expect(messages.published).toEqual([]);
    });
  });

  it('queue nothing over the quota, which the source’s $errors reports', async () => {
    isOverQuota = true;
    expect(await handle()).toBe('over quota');
    expect({ published: messages.published, notified }).toEqual({ published: [], notified: ['dc_1'] });
  });

  it('do not respond over the quota', async () => {
    customResponse = true;
    isOverQuota = true;
    status = null;
    expect(await handle()).toBe('over quota');
  });

  it.each<[string, HttpReply | undefined, RunStatus | null, unknown]>([
    ['with the component’s own reply', REPLY, 'ok', REPLY],
    ['with the reply that came before an error', REPLY, 'threw', REPLY],
    ['as not responded to when the component does not reply', undefined, 'ok', 'no response'],
    ['as not responded to when the component throws', undefined, 'threw', 'no response'],
    ['as stopped after a time-out', undefined, 'timeout', 'stopped'],
    ['as stopped when the process was killed', undefined, 'killed', 'stopped'],
    ['as stopped without memory', undefined, 'memory', 'stopped'],
    ['as stopped when the process ended by itself', undefined, 'crashed', 'stopped'],
    ['as not run when the source was switched off', undefined, null, 'not run'],
  ])('run a component that responds itself at once, and end %s', async (_, its, end, expected) => {
    customResponse = true;
    reply = its;
    status = end;
    expect(await handle()).toEqual(expected);
    expect({ executed: executed.length, published: messages.published }).toEqual({ executed: 1, published: [] });
  });

  it('are responded to by the component after the hooks of a change that is being applied', async () => {
    customResponse = true;
    reply = REPLY;
    const { promise, resolve } = Promise.withResolvers<void>();
    learning = promise;
    const response = handle();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(executed).toEqual([]);
    resolve();
    expect(await response).toEqual(REPLY);
  });

  it.each([
    ['run nothing for a client that has given up before the turn of its request', 5001, 'not run', 0],
    ['run for a client that closes its connection at once, however late its turn comes', 4999, REPLY, 1],
  ])('%s', async (_, waitedMs, expected, runs) => {
    customResponse = true;
    reply = REPLY;
    const { promise, resolve } = Promise.withResolvers<void>();
    learning = promise;
    const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
    try {
      const response = handle();
      await new Promise(setImmediate);
      clock.mockReturnValue(waitedMs);
      closed.resolve();
      await new Promise(setImmediate);
      clock.mockReturnValue(20_000);
      resolve();
      expect(await response).toEqual(expected);
      expect(executed).toHaveLength(runs);
    } finally {
      clock.mockRestore();
    }
  });

  it.each<[string, number, (n: number) => UserId]>([
    ['128 responses of the account', 128, () => 'u_1'],
    ['1024 responses of all accounts', 1024, (n) => `u_${n}`],
  ])('are busy while %s have not been sent', async (_, most, accountOf) => {
    customResponse = true;
    reply = REPLY;
    const handleOf = (account: UserId = accountOf(most)) => handle({ ...DEPLOYMENT, owner_id: account });
    for (let n = 0; n < most; n++) expect(await handleOf(accountOf(n))).toEqual(REPLY);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await handleOf()).toBe('busy');
    closed.resolve();
    closed = Promise.withResolvers();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await handleOf()).toEqual(REPLY);
  });
});
