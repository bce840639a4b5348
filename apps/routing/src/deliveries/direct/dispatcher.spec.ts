import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import { LaneIntake } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { RoutingConfig } from '../../routing.config.js';
import type { Mode, TargetRow } from '../../webhooks/webhooks.repository.js';
import { RunningClock } from '../attempt/running-clock.js';
import { ReceiverStates } from '../receivers/receiver-states.js';
import { Targets } from '../receivers/targets.js';
import { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import { Dispatcher } from './dispatcher.js';

const WEBHOOK: WebhookId = 'wh_1';

const deliveryOf = (seq: number) => ({
  ...{ webhookId: WEBHOOK, place: { ms: 1, seq }, emitterId: 'dc_1' as const, stream: '', emitId: `e${seq}`, json: Buffer.from('1') },
});

const OWNER = 'u_1' as UserId;

const GONE = {
  attempt: { ts: 1, status_code: 410, duration_ms: 1, error: null, response_body: null },
  ...{ verdict: 'gone', timeout: false, tries: 1, pauseMs: null, retryAfterMs: null },
};

describe('a dispatcher', () => {
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  const dispatching = (attempts: object = {}, notices: object = {}, log = createLog('dispatcher', 'silent')) => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, OWNER);
    const targets = new Targets(createLog('dispatcher', 'silent'), store, new SecretBox([]));
    const none = { add() {} } as never;
    const dispatcher = new Dispatcher(
      ...([log, RoutingConfig.read({}), store, targets, new ReceiverStates(), attempts as never] as const),
      ...([none, notices as never, () => 0.5, new RunningClock()] as const),
    );
    return { store, dispatcher };
  };

  it('parks the deliveries that wait for a spilled webhook, but not those that another process may have delivered', async () => {
    const { store, dispatcher } = dispatching();
    await store.spill(WEBHOOK);
    const [first, , third] = [1, 2, 3].map((seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
    third!.isOwn = () => false;
    await first!.run(() => {});
    expect([...store.parked.get(WEBHOOK)!.keys()]).toEqual(['1-1', '1-2']);
  });

  it('attempts no delivery of an event that is deleted while it waits for its turn', async () => {
    const [attempted, ended]: [number[], PromiseWithResolvers<void>] = [[], Promise.withResolvers()];
    const make = async (_: object, { place }: { place: { seq: number } }) => {
      attempted.push(place.seq);
      await ended.promise;
      return { ...GONE, verdict: 'delivered' };
    };
    const { store, dispatcher } = dispatching({ make });
    const waiting = [{}, {}, { stream: 'x' }, { emitterId: 'dc_2' as const }, {}].map((change, nth) => ({
      ...deliveryOf(nth + 1),
      ...change,
    }));
    const tasks = waiting.map((delivery) => dispatcher.firstAttempt(delivery, 1, OWNER));
    const first = tasks[0]!.run(() => {});
    await jest.advanceTimersByTimeAsync(1);
    const deletion = { kind: 'delete' as const, place: { ms: 1, seq: 5 }, emitterId: 'dc_1' as const, start: null, end: null };
    expect(dispatcher.withdraw([{ ...deletion, stream: '' }])).toBe(1);
    ended.resolve();
    await first;
    for (const task of tasks.slice(1)) await task.run(() => {});
    expect(attempted).toEqual([1, 3, 4, 5]);
    expect(store.parked.get(WEBHOOK)!.size).toBe(0);
  });

  it('attempts no delivery of an event that is deleted while its webhook is read', async () => {
    const make = jest.fn(async () => ({ ...GONE, verdict: 'delivered' }));
    const { dispatcher } = dispatching({ make });
    const run = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
    const range = { kind: 'delete' as const, place: { ms: 1, seq: 5 }, emitterId: 'dc_1' as const, start: null, end: null, stream: null };
    expect(dispatcher.withdraw([range])).toBe(1);
    await run;
    expect(make).not.toHaveBeenCalled();
  });

  it('leaves deliveries of deleted events that are being parked to the deletion in the backlog', async () => {
    const { store, dispatcher } = dispatching();
    await store.spill(WEBHOOK);
    const task = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER);
    const [parkFresh, parking] = [store.parkFresh.bind(store), Promise.withResolvers<void>()];
    store.parkFresh = async (...args) => {
      await parking.promise;
      return parkFresh(...args);
    };
    let isDone = false;
    const run = task.run(() => {}).then(() => (isDone = true));
    await jest.advanceTimersByTimeAsync(1);
    const deletion = {
      kind: 'delete' as const,
      place: { ms: 1, seq: 5 },
      emitterId: 'dc_1' as const,
      start: null,
      end: null,
      stream: null,
    };
    expect(dispatcher.withdraw([deletion])).toBe(0);
    await jest.advanceTimersByTimeAsync(1);
    expect(isDone).toBe(false);
    parking.resolve();
    await run;
    expect(store.parked.get(WEBHOOK)!.size).toBe(1);
  });

  it('lets the backlog wait for the attempt in flight of an emitter before it parks the later ones of it', async () => {
    const ended = Promise.withResolvers<void>();
    const make = async () => {
      await ended.promise;
      return { ...GONE, verdict: 'delivered' };
    };
    const { store, dispatcher } = dispatching({ make });
    const [first, , other] = ['dc_1', 'dc_1', 'dc_2'].map((emitterId, nth) =>
      dispatcher.firstAttempt({ ...deliveryOf(nth + 1), emitterId: emitterId as EmitterId }, 1, OWNER),
    );
    const attempted = first!.run(() => {});
    await jest.advanceTimersByTimeAsync(50);
    await store.spill(WEBHOOK);
    dispatcher.firstAttempt(deliveryOf(4), 2, OWNER);
    await other!.run(() => {});
    expect([...store.parked.get(WEBHOOK)!.keys()].sort()).toEqual(['1-1', '1-2', '1-3', '1-4']);
    expect(await store.take(WEBHOOK, 10)).toMatchObject({ parked: [{ delivery: { place: { seq: 3 } } }], inFlight: true });
    ended.resolve();
    await attempted;
    await dispatcher.idle();
    expect((await store.take(WEBHOOK, 10)).parked.map(({ delivery }) => delivery.place.seq)).toEqual([2, 3, 4]);
  });

  it('parks the deliveries that wait for a webhook that is switched off, in order before later ones', async () => {
    const { store, dispatcher } = dispatching();
    const tasks = [1, 2].map((seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
    store.setActive(WEBHOOK, false);
    for (const task of tasks) await task.run(() => {});
    store.setActive(WEBHOOK, true);
    await dispatcher.firstAttempt(deliveryOf(3), 3, OWNER).run(() => {});
    const { parked } = await store.take(WEBHOOK, 10);
    expect(parked.map(({ delivery, fresh }) => [delivery.place.seq, fresh])).toEqual([1, 2, 3].map((seq) => [seq, true]));
    expect(store.backlogs.get(WEBHOOK)!.nextDue).toBeLessThanOrEqual(Date.now());
  });

  it('marks a receiver as failing with each failure, because a success that is noted late may have hidden the first', async () => {
    const { store, dispatcher } = dispatching({ make: async () => ({ ...GONE, verdict: 'failed', pauseMs: 1000 }) });
    for (const seq of [1, 2]) {
      Object.assign(store.hooks.get(WEBHOOK)!, { failingSince: null });
      await dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER).run(() => {});
      expect(store.hooks.get(WEBHOOK)!.failingSince).not.toBeNull();
    }
  });

  it('gives up the deliveries that wait for a webhook whose receiver is gone', async () => {
    const { store, dispatcher } = dispatching({ make: async () => GONE }, { gaveUp: () => {}, disabled: () => {} });
    const spill = jest.spyOn(store, 'spill');
    const tasks = Array.from({ length: 300 }, (_, seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
    await tasks[0]!.run(() => {});
    expect(spill).toHaveBeenCalledTimes(1);
    expect(await store.giveUp(WEBHOOK)).toBe(299);
    for (const task of tasks.slice(1)) await task.run(() => {});
    expect([...store.parked.get(WEBHOOK)!.values()].map(({ dueAt }) => dueAt)).toEqual(Array(300).fill(null));
  });

  it.each(['at once', 'after it was parked in flight'])(
    'attempts a delivery again that the former receiver of a webhook has refused for good %s, when the webhook has another URL by then',
    async (when) => {
      const ended = Promise.withResolvers<typeof GONE>();
      const gaveUp = jest.fn();
      const { store, dispatcher } = dispatching({ make: () => ended.promise }, { gaveUp, disabled: () => {} });
      const run = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
      await jest.advanceTimersByTimeAsync(when === 'at once' ? 100 : 1500);
      Object.assign(store.hooks.get(WEBHOOK)!, { url: 'http://new.test/', version: 2 });
      ended.resolve(GONE);
      await run;
      await dispatcher.idle();
      expect(store.hooks.get(WEBHOOK)).toMatchObject({ active: true });
      expect((await store.take(WEBHOOK, 10)).parked).toMatchObject([{ fresh: false, attempts: [GONE.attempt], tries: 1 }]);
      expect(gaveUp).not.toHaveBeenCalled();
      expect(store.published).toEqual([]);
    },
  );

  it.each([60_000, null])(
    'leaves a delivery due that a user has requested during its first attempt, which was parked in flight and fails: pause %s',
    async (pauseMs) => {
      const ended = Promise.withResolvers<object>();
      const gaveUp = jest.fn();
      const { store, dispatcher } = dispatching({ make: () => ended.promise }, { gaveUp });
      const run = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
      await jest.advanceTimersByTimeAsync(1500);
      store.retry(WEBHOOK, deliveryOf(1).place);
      ended.resolve({ ...GONE, verdict: 'failed', pauseMs });
      await run;
      await dispatcher.idle();
      expect((await store.take(WEBHOOK, 10)).parked).toMatchObject([{ fresh: false, attempts: [GONE.attempt], tries: 0 }]);
      expect(gaveUp).not.toHaveBeenCalled();
      expect(store.published).toEqual([]);
    },
  );

  it('keeps a webhook direct that has another URL when the failures of the former receiver would open its breaker', async () => {
    const [former, make] = [Promise.withResolvers<object>(), jest.fn<() => Promise<object>>()];
    const failed = { ...GONE, verdict: 'failed', pauseMs: 1000, retryAfterMs: 3_600_000 };
    const { store, dispatcher } = dispatching({ make });
    make.mockReturnValue(former.promise);
    const begin = (seq: number) => dispatcher.firstAttempt({ ...deliveryOf(seq), emitterId: `dc_${seq}` }, 1, OWNER).run(() => {});
    const runs = [1, 2, 3, 4, 5].map(begin);
    await jest.advanceTimersByTimeAsync(100);
    Object.assign(store.hooks.get(WEBHOOK)!, { url: 'http://new.test/', version: 2 });
    former.resolve(failed);
    await Promise.all(runs);
    expect(store.hooks.get(WEBHOOK)).toMatchObject({ spilled: false });
    expect(store.backlogs.get(WEBHOOK)).toMatchObject({ failedProbes: null });
    make.mockResolvedValue({ ...failed, retryAfterMs: null });
    await Promise.all([6, 7, 8, 9].map(begin));
    expect(store.hooks.get(WEBHOOK)).toMatchObject({ spilled: false });
    await begin(10);
    expect(store.hooks.get(WEBHOOK)).toMatchObject({ spilled: true });
  });

  it('copies the JSON of a delivery that waits behind others out of a large fetch, once for all webhooks', () => {
    const { store, dispatcher } = dispatching();
    store.addWebhook('wh_2', OWNER);
    const [fetched, small] = [Buffer.alloc(1024 * 1024), Buffer.alloc(1024)];
    const attempt = (seq: number, webhookId: WebhookId, json: Buffer) => {
      const delivery = { ...deliveryOf(seq), webhookId, json };
      dispatcher.firstAttempt(delivery, 1, OWNER);
      return delivery.json;
    };
    const [first, second] = [fetched.subarray(0, 9), fetched.subarray(9, 18)];
    for (const webhook of ['wh_1', 'wh_2'] as const) expect(attempt(1, webhook, first)).toBe(first);
    const copies = (['wh_1', 'wh_2'] as const).map((webhook) => attempt(2, webhook, second));
    expect(copies[0]).toEqual(second);
    expect(copies[0]!.buffer).not.toBe(fetched.buffer);
    expect(copies[1]).toBe(copies[0]);
    expect(attempt(3, 'wh_1', fetched)).toBe(fetched);
    const part = small.subarray(1);
    expect(attempt(4, 'wh_1', part)).toBe(part);
  });

  it('leaves attempts in flight for other accounts when one has many slow webhooks', async () => {
    const begun: string[] = [];
    const make = ({ id }: { id: string }) => {
      begun.push(id);
      return new Promise(() => {});
    };
    const { store, dispatcher } = dispatching({ make });
    const owners = new Map<WebhookId, UserId>(['wh_1', 'wh_2', 'wh_3', 'wh_4', 'wh_5'].map((id) => [id as WebhookId, 'u_1']));
    owners.set('wh_6', 'u_2');
    for (const [id, owner] of owners) store.addWebhook(id, owner);
    const intake = new LaneIntake({
      ...{ concurrency: 4, tenantConcurrency: 3, maxOutstanding: 100 },
      plan: () => [[...owners].map(([webhookId, owner]) => dispatcher.firstAttempt({ ...deliveryOf(1), webhookId }, 1, owner))],
    });
    intake.keepOnly([{ topic: 'events', partition: 0 }]);
    intake.assign([{ topic: 'events', partition: 0, offset: 0, clock: 0, ended: [] }]);
    await intake.take('events', 0, [{ offset: '0', timestamp: '1', key: null, value: null, attributes: 0, headers: {} }]);
    await jest.advanceTimersByTimeAsync(50);
    expect(begun).toEqual(['wh_1', 'wh_2', 'wh_3', 'wh_6']);
  });

  it('reports a webhook whose receiver is gone once, however many attempts were in flight', async () => {
    const disabled: string[] = [];
    const notices = { gaveUp: () => {}, disabled: (_: object, why: string) => void disabled.push(why) };
    const ended = Promise.withResolvers<void>();
    const make = async () => {
      await ended.promise;
      return GONE;
    };
    const { store, dispatcher } = dispatching({ make }, notices);
    const runs = [1, 2, 3, 4].map((seq) => dispatcher.firstAttempt({ ...deliveryOf(seq), emitterId: `dc_${seq}` }, 1, OWNER).run(() => {}));
    await jest.advanceTimersByTimeAsync(1);
    ended.resolve();
    await Promise.all(runs);
    expect(disabled).toEqual(['gone']);
    // the webhook, twice, and a delivery that was given up
    expect(store.published.map(({ topic }) => topic)).toEqual(['routing.error.raised', 'events', 'events']);
    expect(store.hooks.get(WEBHOOK)).toMatchObject({ active: false });
  });

  it('fails the task of an attempt that throws, which is parked if its webhook is spilled before the next try', async () => {
    const make = () => Promise.reject(new Error('a bug'));
    const { store, dispatcher } = dispatching({ make });
    const task = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER);
    await expect(task.run(() => {})).rejects.toThrow('a bug');
    await dispatcher.idle();
    await store.spill(WEBHOOK);
    dispatcher.firstAttempt(deliveryOf(2), 2, OWNER);
    await task.run(() => {});
    expect([...store.parked.get(WEBHOOK)!.keys()].sort()).toEqual(['1-1', '1-2']);
  });

  it('logs once for each slow attempt that the database refuses it, tries again after a pause, and stores the outcome', async () => {
    const ended = Promise.withResolvers<object>();
    const log = createLog('dispatcher', 'silent');
    const warn = jest.spyOn(log, 'warn');
    const { store, dispatcher } = dispatching({ make: () => ended.promise }, {}, log);
    const refuse = async () => Promise.reject(new Error('connection refused'));
    const [park, settle] = [jest.spyOn(store, 'parkInFlight').mockImplementation(refuse), jest.spyOn(store, 'settle')];
    const run = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
    await jest.advanceTimersByTimeAsync(6000);
    expect(park.mock.calls.length).toBeGreaterThan(5);
    expect(park.mock.calls.length).toBeLessThan(15);
    park.mockRestore();
    await jest.advanceTimersByTimeAsync(1000);
    await run;
    expect(store.parked.get(WEBHOOK)!.size).toBe(1);
    settle.mockImplementation(refuse);
    ended.resolve({ ...GONE, verdict: 'delivered' });
    await jest.advanceTimersByTimeAsync(6000);
    expect(settle.mock.calls.length).toBeGreaterThan(3);
    settle.mockRestore();
    await jest.advanceTimersByTimeAsync(6000);
    await dispatcher.idle();
    expect(store.parked.get(WEBHOOK)!.size).toBe(0);
    expect(warn.mock.calls.map(([, event]) => event)).toEqual(['delivery.not-parked', 'delivery.not-settled']);
  });

  it('leaves an attempt that throws after it was parked to the backlog', async () => {
    const ended = Promise.withResolvers<never>();
    const { store, dispatcher } = dispatching({ make: () => ended.promise });
    const run = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
    await jest.advanceTimersByTimeAsync(1500);
    await run;
    ended.reject(new Error('a bug'));
    await dispatcher.idle();
    expect(store.parked.get(WEBHOOK)!.size).toBe(1);
  });

  describe('beside receivers that all take long', () => {
    const WEBHOOKS: WebhookId[] = [WEBHOOK, 'wh_2', 'wh_3'];
    const OWNERS: UserId[] = [OWNER, 'u_2', 'u_3'];

    /** Three receivers whose attempts have taken this long; further ones do not end. */
    const besideSlowOnes = async (durationMs: number, owners: UserId[]) => {
      const delivered = { ...GONE, verdict: 'delivered', attempt: { ...GONE.attempt, duration_ms: durationMs } };
      const make = jest.fn(async (): Promise<unknown> => delivered);
      const { store, dispatcher } = dispatching({ make });
      for (const [nth, webhook] of WEBHOOKS.slice(1).entries()) store.addWebhook(webhook, owners[nth + 1]!);
      const begin = (seq: number) =>
        WEBHOOKS.map((webhookId, nth) => dispatcher.firstAttempt({ ...deliveryOf(seq), webhookId }, 1, owners[nth]!));
      for (const task of begin(1)) await task.run(() => {});
      make.mockReturnValue(new Promise(() => {}));
      return { store, dispatcher, begin };
    };

    it('parks an attempt in flight after three seconds', async () => {
      const { store, begin } = await besideSlowOnes(14_000, OWNERS);
      void begin(2)[0]!.run(() => {});
      await jest.advanceTimersByTimeAsync(2700);
      expect(store.parked.get(WEBHOOK)!.size).toBe(0);
      await jest.advanceTimersByTimeAsync(600);
      expect(store.parked.get(WEBHOOK)!.size).toBe(1);
    });

    it.each<[string, number, UserId[], number]>([
      ['parks at once those that wait for long, because they would delay other accounts', 300, OWNERS, 18],
      ['parks none that waits for a short time', 200, OWNERS, 0],
      ['parks none of an account that is alone', 299, [OWNER, OWNER, OWNER], 0],
    ])('under memory pressure, of the deliveries to receivers with equal shares, %s', async (_, durationMs, owners, parked) => {
      const { store, dispatcher, begin } = await besideSlowOnes(durationMs, owners);
      dispatcher.watchPressure(() => true);
      const begun = Array.from({ length: 18 }, (_each, nth) => begin(nth + 2));
      for (const task of begun[0]!) void task.run(() => {});
      await jest.advanceTimersByTimeAsync(600);
      expect(WEBHOOKS.map((webhook) => store.parked.get(webhook)!.size)).toEqual([parked, parked, parked]);
    });
  });

  describe.each([
    ['parks those that have waited for three seconds for a slow receiver', 300, false, 3300, true],
    ['parks none that waits for a slow receiver for a shorter time', 300, false, 2700, false],
    ['parks none whose queue will take less than a second, however long they have waited', 60, false, 6000, false],
    ['under memory pressure, parks none that waits for a receiver no slower than others', 200, true, 6000, false],
  ] as const)('beside attempts that end in time', (name, durationMs, isPressed, afterMs, areParked) => {
    it(name, async () => {
      const outcome = { ...GONE, verdict: 'delivered', attempt: { ...GONE.attempt, duration_ms: durationMs } };
      const make = async () => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        return outcome;
      };
      const { store, dispatcher } = dispatching({ make });
      dispatcher.watchPressure(() => isPressed);
      const tasks = Array.from({ length: 15 }, (_, seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
      let done = 0;
      const lane = async () => {
        for (const task of tasks) await task.run(() => {}).then(() => (done += 1));
      };
      void lane();
      await jest.advanceTimersByTimeAsync(afterMs);
      expect(store.parked.get(WEBHOOK)!.size > 0).toBe(areParked);
      // their tasks have ended: the committed position does not wait for them
      expect(done === tasks.length).toBe(areParked);
    });
  });

  it('parks none of a short queue that has waited because the database did not respond', async () => {
    const outcome = { ...GONE, verdict: 'delivered', attempt: { ...GONE.attempt, duration_ms: 300 } };
    const make = jest.fn(async (): Promise<object> => outcome);
    const { store, dispatcher } = dispatching({ make });
    store.addWebhook('wh_2', OWNER);
    const [first, ...others] = [1, 2, 3].map((seq) => dispatcher.firstAttempt({ ...deliveryOf(seq), emitterId: `dc_${seq}` }, 1, OWNER));
    await first!.run(() => {});
    make.mockReturnValueOnce(new Promise(() => {}));
    void dispatcher.firstAttempt({ ...deliveryOf(1), webhookId: 'wh_2' }, 1, OWNER).run(() => {});
    await jest.advanceTimersByTimeAsync(100);
    const stalled = Promise.withResolvers<TargetRow[]>();
    jest.spyOn(store, 'findTargets').mockReturnValueOnce(stalled.promise);
    // the webhook has changed, so it is read again
    others.push(dispatcher.firstAttempt({ ...deliveryOf(4), emitterId: 'dc_4' }, 2, OWNER));
    const runs = others.map((task) => task.run(() => {}));
    await jest.advanceTimersByTimeAsync(10_000);
    stalled.resolve(await store.findTargets([WEBHOOK]));
    await Promise.all(runs);
    expect(store.hooks.get(WEBHOOK)).toMatchObject({ spilled: false });
    expect(make).toHaveBeenCalledTimes(5);
  });

  it('hands over the deliveries behind a slow attempt, in order, and not those that have begun to wait a moment ago', async () => {
    const { store, dispatcher } = dispatching({ make: () => new Promise(() => {}) });
    store.addWebhook('wh_2', OWNER);
    const tasks = [1, 2, 3].map((seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
    const attempted = tasks[0]!.run(() => {});
    await jest.advanceTimersByTimeAsync(300);
    const recent = dispatcher.firstAttempt({ ...deliveryOf(4), webhookId: 'wh_2' }, 1, OWNER);
    await dispatcher.handOver();
    // parked in flight
    await attempted;
    expect([...store.parked.get(WEBHOOK)!.keys()]).toEqual(['1-1', '1-2', '1-3']);
    expect(await store.take(WEBHOOK, 10)).toMatchObject({ parked: [], inFlight: true });
    expect([tasks[1], tasks[2], recent].map((task) => task!.isSettled!())).toEqual([true, true, false]);
    expect(store.hooks.get('wh_2')).toMatchObject({ spilled: false });
  });

  it('hands over the deliveries of a webhook that has become direct again while they were being parked', async () => {
    const { store, dispatcher } = dispatching({ make: () => new Promise(() => {}) });
    await store.spill(WEBHOOK);
    const [first] = [1, 2].map((seq) => dispatcher.firstAttempt(deliveryOf(seq), 1, OWNER));
    const parking = Promise.withResolvers<Mode>();
    jest.spyOn(store, 'parkFresh').mockReturnValueOnce(parking.promise);
    void first!.run(() => {});
    await jest.advanceTimersByTimeAsync(300);
    const handedOver = dispatcher.handOver();
    store.hooks.get(WEBHOOK)!.spilled = false;
    parking.resolve('direct');
    await handedOver;
    expect([...store.parked.get(WEBHOOK)!.keys()]).toEqual(['1-1', '1-2']);
  });

  it('hands over nothing while the database is down', async () => {
    const { store, dispatcher } = dispatching();
    jest.spyOn(store, 'spill').mockRejectedValue(new Error('connection refused'));
    const task = dispatcher.firstAttempt(deliveryOf(1), 1, OWNER);
    await jest.advanceTimersByTimeAsync(300);
    await dispatcher.handOver();
    expect(task.isSettled!()).toBe(false);
  });

  it('does not count the time in which this process stood still as the duration of an attempt', async () => {
    const { store, dispatcher } = dispatching({ make: () => new Promise(() => {}) });
    void dispatcher.firstAttempt(deliveryOf(1), 1, OWNER).run(() => {});
    await jest.advanceTimersByTimeAsync(300);
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 5000);
    await jest.advanceTimersByTimeAsync(300);
    expect(store.parked.get(WEBHOOK)!.size).toBe(0);
    await jest.advanceTimersByTimeAsync(1000);
    expect(store.parked.get(WEBHOOK)!.size).toBe(1);
    jest.restoreAllMocks();
  });
});
