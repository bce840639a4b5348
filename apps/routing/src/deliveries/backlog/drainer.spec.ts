import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { RoutingConfig } from '../../routing.config.js';
import { Attempts } from '../attempt/attempts.js';
import { type PostResult, Poster } from '../attempt/http-poster.js';
import { RunningClock } from '../attempt/running-clock.js';
import { ReceiverStates } from '../receivers/receiver-states.js';
import { Targets } from '../receivers/targets.js';
import { DeliveryStoreInMemory, UNSHARED } from '../store/delivery-store-in-memory-for-tests.js';
import type { Claim } from '../store/delivery-store.js';
import type { DeliveredLog } from '../history/delivered-log.js';
import type { Delivery } from '../delivery.js';
import { Drainer } from './drainer.js';

const WEBHOOK: WebhookId = 'wh_1';
const PLACE = { ms: 1, seq: 1 };
const MINUTE = 60_000;
/** At which the fake clock stands. */
const NOW = 1_700_000_000_000;

const silent = createLog('drainer', 'silent');
const OK: PostResult = { kind: 'response', status: 200, body: '' };
const FAILED: PostResult = { kind: 'failed', reason: 'connection refused', timeout: false };

class FixedPoster extends Poster {
  posts = 0;
  constructor(private readonly result: () => PostResult) {
    super();
  }
  post = async () => {
    this.posts += 1;
    return this.result();
  };
  close = async () => {};
}

/** A drainer whose attempts have this result, with the backlogs of all webhooks. `drain` drains the first one. */
async function draining(store: DeliveryStoreInMemory, result: () => PostResult, config = RoutingConfig.read({})) {
  const middle = () => 0.5;
  const none = { countEnded() {}, gaveUp() {}, disabled: () => {} } as never;
  /** How often each delivery was listed as succeeded, and how many were in the backlog then. */
  const listed: Record<number, number[]> = {};
  const delivered = {
    add: ({ place, webhookId }: Delivery) => void (listed[place.seq] ??= []).push(store.parked.get(webhookId)!.size),
  } as unknown as DeliveredLog;
  const poster = new FixedPoster(result);
  const clock = new RunningClock();
  const attempts = new Attempts(silent, config, poster, middle, none, clock);
  const targets = new Targets(silent, store, new SecretBox([]));
  const drainer = new Drainer(silent, config, store, targets, new ReceiverStates(), attempts, delivered, none, middle);
  const claims = await store.claim(1000, 'lease', MINUTE, UNSHARED);
  const drain = (othersWait?: () => boolean) => drainer.drain(claims[0] as Claim, othersWait);
  return { poster, drainer, listed, drain, drainAll: () => Promise.all(claims.map((claim) => drainer.drain(claim))) };
}

const deliveryOf = (seq: number, emitterId: EmitterId = 'dc_1') => ({
  ...{ webhookId: WEBHOOK, place: { ...PLACE, seq }, emitterId, stream: '', emitId: 'e', json: Buffer.from('1') },
});

/** Probes a receiver with a delivery that was attempted three times, and returns what is stored then. */
async function probe(result: PostResult, dueInMs: number, sinceFirstMs = 0) {
  const store = new DeliveryStoreInMemory();
  store.addWebhook(WEBHOOK, 'u_1');
  await store.parkFailed({ delivery: deliveryOf(1), delivered: false, attempts: [], tries: 3, pauseMs: dueInMs });
  store.parked.get(WEBHOOK)!.get(`${PLACE.ms}-${PLACE.seq}`)!.parkedAt -= sinceFirstMs;
  await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
  const { drain } = await draining(store, () => result);
  await drain();
  const row = store.parked.get(WEBHOOK)?.get(`${PLACE.ms}-${PLACE.seq}`);
  return {
    tries: row?.tries,
    attempts: row?.attempts.length,
    dueInMs: row?.dueAt && row.dueAt - NOW,
    nextProbeInMs: store.backlogs.get(WEBHOOK)!.nextDue - NOW,
  };
}

/** Drains a delivery that was attempted twice, whose user requested an attempt ten minutes before its time, and returns what is stored then. */
async function drainEarly(result: PostResult, tries = 2) {
  const store = new DeliveryStoreInMemory();
  store.addWebhook(WEBHOOK, 'u_1');
  await store.parkFailed({ delivery: deliveryOf(1), delivered: false, attempts: [], tries, pauseMs: 0 });
  store.parked.get(WEBHOOK)!.get(`${PLACE.ms}-${PLACE.seq}`)!.scheduledAt = NOW + 10 * MINUTE;
  const { drain } = await draining(store, () => result);
  await drain();
  const row = store.parked.get(WEBHOOK)?.get(`${PLACE.ms}-${PLACE.seq}`);
  return { tries: row?.tries, dueInMs: row?.dueAt && row.dueAt - NOW };
}

/** A delivery that was attempted three times, and that its user requests again during the first of further attempts with these results. */
async function requestedDuring(results: PostResult[]) {
  const store = new DeliveryStoreInMemory();
  store.addWebhook(WEBHOOK, 'u_1');
  await store.parkFailed({ delivery: deliveryOf(1), delivered: false, attempts: [], tries: 3, pauseMs: 0 });
  const drained = await draining(store, () => {
    if (drained.poster.posts === 1) store.retry(WEBHOOK, PLACE);
    return results.shift()!;
  });
  return { ...drained, store };
}

/** Drains six parked deliveries: of one emitter, which are attempted one at a time, or of six, which are attempted together. */
async function drainSix(emitters: 'one' | 'six', result: (store: DeliveryStoreInMemory, post: number) => PostResult, isOpen = false) {
  const store = new DeliveryStoreInMemory();
  store.addWebhook(WEBHOOK, 'u_1');
  if (isOpen) await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
  else await store.spill(WEBHOOK);
  await store.parkFresh(
    WEBHOOK,
    [1, 2, 3, 4, 5, 6].map((seq) => deliveryOf(seq, emitters === 'one' ? 'dc_1' : `dc_${seq}`)),
  );
  const { poster, drain } = await draining(store, () => result(store, poster.posts));
  const drained = drain();
  await jest.advanceTimersByTimeAsync(2000);
  await drained;
  const rows = [...store.parked.get(WEBHOOK)!.values()];
  const waiting = rows.filter(({ dueAt }) => dueAt !== null).length;
  return { posts: poster.posts, parked: rows.length, waiting, backlog: store.backlogs.get(WEBHOOK) };
}

/** The process stands still for this long. */
function standStill(ms: number): void {
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + ms);
}

const takeOver = (store: DeliveryStoreInMemory): void => {
  Object.assign(store.backlogs.get(WEBHOOK)!, { leaseId: 'another', leasedUntil: Infinity });
};

describe('an attempt before its time, which a user has requested', () => {
  beforeEach(() => void jest.useFakeTimers({ now: NOW, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  it.each([2, 9])('leaves the schedule as it was if it fails, after %s attempts', async (tries) => {
    expect(await drainEarly(FAILED, tries)).toEqual({ tries, dueInMs: 10 * MINUTE });
  });

  it.each([
    ['500', '1200', 20 * MINUTE],
    ['500', '60', 10 * MINUTE],
    ['503', '60', 1.05 * MINUTE],
  ])('is followed by the next one when the receiver requests it: %s, Retry-After: %s', async (status, retryAfter, dueInMs) => {
    expect(await drainEarly({ kind: 'response', status: Number(status), retryAfter, body: '' })).toEqual({ tries: 2, dueInMs });
  });

  it('is made at once after another one in progress that fails', async () => {
    const { poster, drain, store } = await requestedDuring([FAILED, OK]);
    const drained = drain();
    await jest.advanceTimersByTimeAsync(2000);
    await drained;
    expect([poster.posts, store.parked.get(WEBHOOK)!.size]).toEqual([2, 0]);
  });

  it('ends the delivery if the attempt succeeds', async () => {
    expect(await drainEarly(OK)).toEqual({ tries: undefined, dueInMs: undefined });
  });
});

describe('a probe that fails', () => {
  beforeEach(() => void jest.useFakeTimers({ now: NOW, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  it('does not use up the retry schedule of a delivery that is not due', async () => {
    expect(await probe(FAILED, 90 * MINUTE)).toEqual({ tries: 3, attempts: 1, dueInMs: 90 * MINUTE, nextProbeInMs: 10_000 });
  });

  it('does not use up that of a delivery that is due either, so that it does not wait for long when the receiver has recovered', async () => {
    expect(await probe(FAILED, 0)).toEqual({ tries: 3, attempts: 1, dueInMs: 30 * MINUTE, nextProbeInMs: 10_000 });
    expect(await probe({ kind: 'response', status: 503, retryAfter: '60', body: '' }, 0, MINUTE)).toMatchObject({
      tries: 3,
      dueInMs: 1.05 * MINUTE,
    });
  });

  it('is the last attempt of a delivery that is due when the time of the whole schedule has passed', async () => {
    expect(await probe(FAILED, 0, 80 * 60 * MINUTE)).toMatchObject({ attempts: 1, dueInMs: null });
    expect(await probe(FAILED, MINUTE, 80 * 60 * MINUTE)).toMatchObject({ attempts: 1, tries: 3, dueInMs: MINUTE });
  });

  it('is followed at once by the attempt that a user has requested during it', async () => {
    const { poster, drain, store } = await requestedDuring([FAILED]);
    await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
    await drain();
    const backlog = store.backlogs.get(WEBHOOK)!;
    expect([poster.posts, backlog.leaseId]).toEqual([1, null]);
    expect(backlog.nextDue).toBeLessThanOrEqual(Date.now());
    expect((await store.takeProbe(WEBHOOK, 1)).parked).toMatchObject([{ tries: 3, attempts: [{ error: 'connection refused' }] }]);
  });

  it('is the first attempt of a delivery that was never attempted', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
    await store.parkFresh(WEBHOOK, [deliveryOf(1)]);
    await (await draining(store, () => FAILED)).drain();
    expect([...store.parked.get(WEBHOOK)!.values()]).toMatchObject([{ fresh: false, tries: 1, dueAt: NOW + 5000 }]);
  });

  it('is followed by no attempt before the time that the receiver requested', async () => {
    const result: PostResult = { kind: 'response', status: 500, retryAfter: '600', body: '' };
    expect(await probe(result, MINUTE)).toEqual({ tries: 3, attempts: 1, dueInMs: 10 * MINUTE, nextProbeInMs: 10 * MINUTE });
  });
});

it('a drainer holds a limited number of bytes in memory, over all backlogs', async () => {
  const store = new DeliveryStoreInMemory();
  const json = Buffer.alloc(1024 * 1024, '1');
  const webhooks = Array.from({ length: 100 }, (_, n): WebhookId => `wh_${n}`);
  for (const id of webhooks) {
    store.addWebhook(id, 'u_1');
    await store.spill(id);
    await store.parkFresh(
      id,
      [1, 2].map((seq) => ({ ...deliveryOf(seq), webhookId: id, json })),
    );
  }
  const held = new Map<WebhookId, number>();
  let most = 0;
  const take = store.take.bind(store);
  store.take = async (id, limit, bytes) => {
    const taken = await take(id, limit, bytes);
    held.set(id, taken.parked.length);
    most = Math.max(
      most,
      [...held.values()].reduce((sum, each) => sum + each),
    );
    return taken;
  };
  const settle = store.settle.bind(store);
  store.settle = async (id, settlements, options) => {
    held.set(id, (held.get(id) ?? 0) - settlements.length);
    return settle(id, settlements, options);
  };
  const { poster, drainAll } = await draining(store, () => OK);
  await drainAll();
  expect(poster.posts).toBe(200);
  expect(most).toBeGreaterThan(20);
  expect(most).toBeLessThanOrEqual(64);
});

describe('a drainer', () => {
  beforeEach(() => void jest.useFakeTimers({ now: NOW, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('lists a delivery that succeeds before it leaves the backlog, and once, although the database refuses its outcome at first', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { spilled: true });
    await store.parkFresh(WEBHOOK, [deliveryOf(1), deliveryOf(2, 'dc_2')]);
    const { drain, listed } = await draining(store, () => OK);
    jest.spyOn(store, 'settle').mockRejectedValueOnce(new Error('connection refused'));
    const drained = drain();
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(50);
    await drained;
    expect(listed).toEqual({ 1: [2], 2: [2] });
    expect(store.parked.get(WEBHOOK)!.size).toBe(0);
  });

  it('leaves attempts in flight for the backlogs of other accounts', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.spill(WEBHOOK);
    await store.parkFresh(
      WEBHOOK,
      [1, 2, 3, 4].map((seq) => deliveryOf(seq, `dc_${seq}`)),
    );
    const config = Object.assign(RoutingConfig.read({}), { concurrency: 4, webhookConcurrency: 4 });
    const { poster, drain } = await draining(store, () => OK, config);
    const hanging = Promise.withResolvers<PostResult>();
    poster.post = () => {
      poster.posts += 1;
      return hanging.promise;
    };
    const drained = drain();
    for (let turn = 0; turn < 5; turn++) await jest.advanceTimersByTimeAsync(20);
    expect(poster.posts).toBe(3);
    hanging.resolve(OK);
    await jest.advanceTimersByTimeAsync(2000);
    await drained;
    expect(poster.posts).toBe(4);
  });

  it('leaves the rest to the next owner after it stood still for longer than its lease', async () => {
    const { posts, backlog } = await drainSix('one', (store, post) => {
      if (post === 2) {
        standStill(40_000);
        takeOver(store);
      }
      return OK;
    });
    expect(posts).toBe(2);
    expect(backlog).toMatchObject({ leaseId: 'another', failedProbes: null });
  });

  it('continues after it stood still if no other replica has taken over', async () => {
    const { posts, parked } = await drainSix('one', (_, post) => {
      if (post === 2) standStill(40_000);
      return OK;
    });
    expect({ posts, parked }).toEqual({ posts: 6, parked: 0 });
  });

  it.each(['one', 'six'] as const)('gives up the deliveries of a webhook whose receiver is gone: of %s emitters', async (emitters) => {
    const { posts, parked, backlog, waiting } = await drainSix(emitters, () => ({ kind: 'response', status: 410, body: '' }));
    expect(posts).toBe(emitters === 'one' ? 1 : RoutingConfig.read({}).webhookConcurrency);
    expect({ parked, waiting }).toEqual({ parked: 6, waiting: 0 });
    expect(backlog).toMatchObject({ leaseId: null, nextDue: Infinity });
  });

  it('gives up the deliveries of a webhook when a probe finds that its receiver is gone', async () => {
    const { posts, waiting } = await drainSix('one', () => ({ kind: 'response', status: 410, body: '' }), true);
    expect({ posts, waiting }).toEqual({ posts: 1, waiting: 0 });
  });

  it.each([
    ['', false],
    ['of a probe ', true],
  ])('attempts a delivery at the new URL of its webhook if the former receiver %shas returned 410 meanwhile', async (_, isOpen) => {
    const { posts, parked } = await drainSix(
      'one',
      (store, post) => {
        if (post > 1) return OK;
        store.hooks.get(WEBHOOK)!.url = 'http://new.test/';
        store.setActive(WEBHOOK, true);
        return { kind: 'response', status: 410, body: '' };
      },
      isOpen,
    );
    expect({ posts, parked }).toEqual({ posts: 7, parked: 0 });
  });

  it('continues at the new URL of its webhook although the former receiver has failed five times in a row and requested a pause', async () => {
    const { posts, parked, waiting, backlog } = await drainSix('one', (store, post) => {
      if (post > 5) return OK;
      if (post === 5) store.hooks.get(WEBHOOK)!.url = 'http://new.test/';
      return { kind: 'response', status: 503, retryAfter: '3600', body: '' };
    });
    expect({ posts, parked, waiting }).toEqual({ posts: 6, parked: 5, waiting: 5 });
    expect(backlog).toMatchObject({ failedProbes: null, leaseId: null });
  });

  it('probes the new receiver of a webhook soon if it fails, however long a pause the former one has requested', async () => {
    const { backlog } = await drainSix('one', (store, post) => {
      if (post > 1) return FAILED;
      store.hooks.get(WEBHOOK)!.url = 'http://new.test/';
      // the state of a webhook is read again after a second
      standStill(1000);
      return { kind: 'response', status: 503, retryAfter: '3600', body: '' };
    });
    expect(backlog).toMatchObject({ failedProbes: 0, leaseId: null });
    expect(backlog!.nextDue - NOW).toBeLessThan(MINUTE);
  });

  it('opens the breaker of a receiver that fails although the former one of its webhook returns 410 afterwards', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.spill(WEBHOOK);
    await store.parkFresh(
      WEBHOOK,
      Array.from({ length: 16 }, (_, n) => deliveryOf(n, `dc_${n}`)),
    );
    const { poster, drain } = await draining(store, () => FAILED);
    const former = Promise.withResolvers<PostResult>();
    poster.post = async () => {
      poster.posts += 1;
      if (poster.posts > 1) return FAILED;
      store.hooks.get(WEBHOOK)!.url = 'http://new.test/';
      standStill(1000);
      return former.promise;
    };
    const drained = drain();
    for (let turn = 0; turn < 20; turn++) await jest.advanceTimersByTimeAsync(100);
    former.resolve({ kind: 'response', status: 410, body: '' });
    await jest.advanceTimersByTimeAsync(2000);
    await drained;
    // four at the former one, five that fail at the new one, and two that had begun
    expect(poster.posts).toBe(11);
    expect(store.backlogs.get(WEBHOOK)).toMatchObject({ failedProbes: 0 });
  });

  it('stops after a turn while other backlogs wait, and is due behind them', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { rate_limit: 1, spilled: true });
    await store.parkFresh(
      WEBHOOK,
      Array.from({ length: 100 }, (_, seq) => deliveryOf(seq)),
    );
    const { poster, drain } = await draining(store, () => OK);
    let othersWait = false;
    const drained = drain(() => othersWait);
    const pass = async (seconds: number) => {
      for (let turn = 0; turn < 10 * seconds; turn++) await jest.advanceTimersByTimeAsync(100);
    };
    await pass(20);
    expect(poster.posts).toBeGreaterThanOrEqual(19);
    othersWait = true;
    await pass(3);
    await drained;
    expect(poster.posts).toBeLessThanOrEqual(22);
    const { leaseId, nextDue } = store.backlogs.get(WEBHOOK)!;
    expect(leaseId).toBeNull();
    expect(Date.now() - nextDue).toBeLessThanOrEqual(3000);
  });

  it('takes the deliveries of a webhook with a rate limit for a part of a second at a time', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { rate_limit: 100, spilled: true });
    await store.parkFresh(
      WEBHOOK,
      Array.from({ length: 300 }, (_, seq) => deliveryOf(seq)),
    );
    const take = jest.spyOn(store, 'take');
    const { poster, drain } = await draining(store, () => OK);
    const drained = drain();
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(10);
    expect(poster.posts).toBeGreaterThanOrEqual(180);
    expect(poster.posts).toBeLessThanOrEqual(200);
    for (let turn = 0; turn < 150; turn++) await jest.advanceTimersByTimeAsync(10);
    await drained;
    expect(poster.posts).toBe(300);
    expect(take.mock.calls.length).toBeLessThan(15);
  });

  it('leaves the rest of what it has taken when its turn is over', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.spill(WEBHOOK);
    await store.parkFresh(WEBHOOK, [deliveryOf(1), deliveryOf(2), deliveryOf(3)]);
    const { poster, drain } = await draining(store, () => OK);
    poster.post = async () => {
      poster.posts += 1;
      await new Promise((resolve) => setTimeout(resolve, 4000));
      return OK;
    };
    const drained = drain(() => true);
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(100);
    await drained;
    expect({ posts: poster.posts, parked: store.parked.get(WEBHOOK)!.size }).toEqual({ posts: 2, parked: 1 });
  });

  it.each([
    ['a first attempt', true, 500],
    ['a retry', false, 50],
  ])('attempts the deliveries of other emitters, also later ones, while %s takes long', async (_, fresh, count) => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { rate_limit: 1000, spilled: true });
    if (fresh) await store.parkFresh(WEBHOOK, [deliveryOf(0)]);
    else await store.parkFailed({ delivery: deliveryOf(0), delivered: false, attempts: [], tries: 1, pauseMs: 0 });
    await store.parkFresh(
      WEBHOOK,
      Array.from({ length: count }, (__, n) => deliveryOf(n + 1, 'dc_1')),
    );
    const { poster, drain } = await draining(store, () => OK);
    const posted: number[] = [];
    poster.post = async (...[, headers]: unknown[]) => {
      const seq = Number((headers as Record<string, string>)['ce-sluiceevent']!.split('-')[1]);
      posted.push(seq);
      await new Promise((resolve) => setTimeout(resolve, seq === 0 ? 14_000 : 5));
      return OK;
    };
    const drained = drain();
    for (let seq = 1001; seq <= 1005; seq++) {
      await store.parkFresh(WEBHOOK, [deliveryOf(seq, 'dc_2')]);
      for (let turn = 0; turn < 30; turn++) await jest.advanceTimersByTimeAsync(50);
      expect(posted).toContain(seq);
    }
    if (fresh) expect(posted.filter((seq) => seq < 1000)).toEqual([0]);
    for (let turn = 0; turn < 500; turn++) await jest.advanceTimersByTimeAsync(50);
    await drained;
    expect(posted.filter((seq) => seq > 0 && seq < 1000)).toEqual(Array.from({ length: count }, (__, n) => n + 1));
    expect(new Set(posted).size).toBe(posted.length);
  });

  it('takes no deliveries while slow attempts have all places of the webhook, and the next one as soon as one ends', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { spilled: true });
    await store.parkFresh(
      WEBHOOK,
      Array.from({ length: 40 }, (_, n) => deliveryOf(n, `dc_${n}`)),
    );
    const { poster, drain } = await draining(store, () => OK);
    const hanging = Promise.withResolvers<PostResult>();
    poster.post = async () => {
      poster.posts += 1;
      return poster.posts <= 4 ? hanging.promise : OK;
    };
    const drained = drain();
    for (let turn = 0; turn < 60; turn++) await jest.advanceTimersByTimeAsync(50);
    const take = jest.spyOn(store, 'take');
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(50);
    expect([poster.posts, take.mock.calls.length]).toEqual([4, 0]);
    hanging.resolve(OK);
    await jest.advanceTimersByTimeAsync(100);
    expect(poster.posts).toBeGreaterThan(4);
    await jest.advanceTimersByTimeAsync(2000);
    await drained;
    expect(poster.posts).toBe(40);
  });

  it('keeps no memory for deliveries that wait for long, so that other accounts get some', async () => {
    const store = new DeliveryStoreInMemory();
    const json = Buffer.alloc(40_000, '1');
    const park = async (id: WebhookId, owner: UserId, count: number) => {
      store.addWebhook(id, owner, { rate_limit: 10_000, spilled: true });
      const deliveries = Array.from({ length: count }, (_, seq) => ({ ...deliveryOf(seq), webhookId: id, json }));
      await store.parkFresh(id, deliveries);
    };
    for (let n = 0; n < 40; n++) await park(`wh_slow${n}`, n < 24 ? 'u_1' : 'u_2', 200);
    await park('wh_fast', 'u_3', 1);
    const { poster, drainAll } = await draining(store, () => OK);
    const posted: string[] = [];
    poster.post = async (...[to]: unknown[]) => {
      const { origin } = to as { origin: string };
      posted.push(origin);
      await new Promise((resolve) => setTimeout(resolve, origin.includes('slow') ? 14_000 : 5));
      return OK;
    };
    const drained = drainAll();
    for (let turn = 0; turn < 60; turn++) await jest.advanceTimersByTimeAsync(50);
    expect(posted).toContain('http://wh-fast.test');
    expect(posted).toHaveLength(41);
    store.hooks.clear();
    for (let turn = 0; turn < 40; turn++) await jest.advanceTimersByTimeAsync(1000);
    await drained;
  });

  it('disables the webhooks of receivers that are gone, although their deliveries use all the memory of the account', async () => {
    const store = new DeliveryStoreInMemory();
    const json = Buffer.alloc(1024 * 1024 - 100, '1');
    for (let n = 0; n < 20; n++) {
      const webhookId: WebhookId = `wh_gone${n}`;
      store.addWebhook(webhookId, 'u_1', { spilled: true });
      await store.parkFresh(
        webhookId,
        [1, 2, 3, 4, 5, 6].map((seq) => ({ ...deliveryOf(seq, `dc_${seq}`), webhookId, json })),
      );
    }
    const { poster, drainAll } = await draining(store, () => OK);
    poster.post = async () => {
      await new Promise((resolve) => setTimeout(resolve, 2500));
      return { ...OK, status: 410 };
    };
    let isDrained = false;
    void drainAll().then(() => (isDrained = true));
    for (let turn = 0; turn < 600 && !isDrained; turn++) await jest.advanceTimersByTimeAsync(50);
    expect(isDrained).toBe(true);
    expect([...store.hooks.values()].filter(({ active }) => active)).toEqual([]);
  });

  it('does not attempt a delivery whose event was deleted while it waited for its turn', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.spill(WEBHOOK);
    await store.parkFresh(WEBHOOK, [deliveryOf(1), deliveryOf(2), deliveryOf(3)]);
    const { poster, drain } = await draining(store, () => OK);
    const posted: string[] = [];
    poster.post = async (...[, headers]: unknown[]) => {
      posted.push((headers as Record<string, string>)['ce-sluiceevent']!);
      if (posted.length === 1) Object.assign(store.parked.get(WEBHOOK)!.get('1-2')!, { dueAt: null });
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return OK;
    };
    const drained = drain();
    for (let turn = 0; turn < 60; turn++) await jest.advanceTimersByTimeAsync(100);
    await drained;
    expect(posted).toEqual(['1-1', '1-3']);
  });

  it('keeps the tokens of a rate limit that it could not use', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { rate_limit: 6, spilled: true });
    const slow = deliveryOf(0);
    await store.parkInFlight(slow, MINUTE);
    await store.parkFresh(
      WEBHOOK,
      [1, 2, 3, 4, 5, 6].map((seq) => deliveryOf(seq)),
    );
    const { poster, drain } = await draining(store, () => OK);
    await drain();
    expect(poster.posts).toBe(0);
    await store.settle(WEBHOOK, [{ delivery: slow, delivered: true, attempts: [] }]);
    Object.assign(store.backlogs.get(WEBHOOK)!, { leaseId: 'lease' });
    const drained = drain();
    for (let turn = 0; turn < 10; turn++) await jest.advanceTimersByTimeAsync(10);
    expect(poster.posts).toBe(6);
    await jest.advanceTimersByTimeAsync(2000);
    await drained;
  });

  it.each([
    ['its backlog is empty', 100],
    ['its turn is over', 0],
  ])('keeps a rate limit together with the replica that takes over when %s', async (_, everyMs) => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { rate_limit: 5, spilled: true });
    const replicas = [await draining(store, () => OK), await draining(store, () => OK)];
    for (let ms = 0; ms < 10_000; ms += 10) {
      if (everyMs === 0 || ms % everyMs === 0) await store.parkFresh(WEBHOOK, [deliveryOf(ms)]);
      const [claim] = await store.claim(1, `lease ${ms}`, MINUTE, UNSHARED);
      if (claim) {
        void replicas[0]!.drainer.drain(claim, () => true);
        replicas.reverse();
      }
      await jest.advanceTimersByTimeAsync(10);
    }
    const posts = replicas[0]!.poster.posts + replicas[1]!.poster.posts;
    expect(posts).toBeGreaterThanOrEqual(45);
    expect(posts).toBeLessThanOrEqual(55);
  });

  it('does not open the breaker of a backlog that another replica owns', async () => {
    const { posts, backlog } = await drainSix('six', (store) => {
      takeOver(store);
      return FAILED;
    });
    expect(posts).toBeGreaterThanOrEqual(5);
    expect(backlog).toMatchObject({ leaseId: 'another', failedProbes: null });
  });

  it.each([
    ['switched off', { active: false }],
    ['deleted', undefined],
  ])('attempts no more deliveries of a webhook that is %s meanwhile', async (_, change) => {
    const { posts, parked } = await drainSix('one', (store, post) => {
      if (post === 2 && change) store.setActive(WEBHOOK, false);
      if (post === 2 && !change) store.hooks.delete(WEBHOOK);
      // the state of a webhook is read again after a second
      if (post === 2) standStill(1000);
      return OK;
    });
    expect(posts).toBe(2);
    if (change) expect(parked).toBe(4);
  });

  it('sends nothing to a webhook whose secret cannot be decrypted, and probes it later', async () => {
    const store = new DeliveryStoreInMemory();
    const box = new SecretBox([Buffer.alloc(32)]);
    store.addWebhook(WEBHOOK, 'u_1', { secret: box.seal('whsec_AAAA', `webhook ${WEBHOOK}`) });
    await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
    await store.parkFresh(WEBHOOK, [deliveryOf(1)]);
    const { poster, drain } = await draining(store, () => OK);
    await drain();
    expect(poster.posts).toBe(0);
    const [row] = store.parked.get(WEBHOOK)!.values();
    expect(row!.attempts).toMatchObject([{ status_code: null, error: 'the signing secret of the webhook cannot be decrypted' }]);
    expect(store.backlogs.get(WEBHOOK)).toMatchObject({ leaseId: null, failedProbes: 1 });
  });

  it.each(['settle', 'disable'] as const)('reports a delivery that is given up once if the statement %s fails', async (statement) => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.parkFailed({ delivery: deliveryOf(1), delivered: false, attempts: [], tries: 1000, pauseMs: 0 });
    const { drain } = await draining(store, () => FAILED);
    jest.spyOn(store, statement).mockImplementationOnce(() => Promise.reject<never>(new Error('the connection is lost')));
    const drained = drain();
    for (let turn = 0; turn < 20; turn++) await jest.advanceTimersByTimeAsync(100);
    await drained;
    expect(store.published).toMatchObject([{ topic: 'events', key: 'dc_1', account: 'u_1' }]);
    expect([...store.parked.get(WEBHOOK)!.values()]).toMatchObject([{ dueAt: null }]);
  });

  it('looks again at once at a webhook that was switched on after it was read as inactive', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1', { active: false });
    await store.parkFailed({ delivery: deliveryOf(1), delivered: false, attempts: [], tries: 1, pauseMs: 0 });
    const findTargets = store.findTargets.bind(store);
    store.findTargets = async (ids) => {
      const targets = await findTargets(ids);
      store.setActive(WEBHOOK, true);
      return targets;
    };
    const { drain } = await draining(store, () => OK);
    await drain();
    expect(store.backlogs.get(WEBHOOK)).toMatchObject({ leaseId: null, nextDue: NOW });
  });

  it('probes a receiver again at once if its webhook was changed during a probe that fails', async () => {
    const { posts, backlog } = await drainSix(
      'one',
      (store) => {
        store.setActive(WEBHOOK, true);
        return FAILED;
      },
      true,
    );
    expect(posts).toBe(1);
    expect(backlog).toMatchObject({ leaseId: null, failedProbes: null });
    expect(backlog!.nextDue).toBeLessThanOrEqual(Date.now());
  });

  it('leaves the breaker open while all deliveries wait for the end of an attempt in flight', async () => {
    const store = new DeliveryStoreInMemory();
    store.addWebhook(WEBHOOK, 'u_1');
    await store.parkInFlight(deliveryOf(1), MINUTE);
    await store.parkFresh(WEBHOOK, [deliveryOf(2)]);
    await store.openBreaker(store.hooks.get(WEBHOOK)!, 0);
    const { poster, drain } = await draining(store, () => OK);
    await drain();
    expect(poster.posts).toBe(0);
    expect(store.backlogs.get(WEBHOOK)).toMatchObject({ failedProbes: 0, leaseId: null, nextDue: NOW + 1000 });
  });

  it('keeps the time of the first probe if another replica has opened the breaker', async () => {
    const { posts, backlog } = await drainSix('one', (store, post) => {
      if (post === 1) void store.openBreaker(store.hooks.get(WEBHOOK)!, 60 * MINUTE);
      return OK;
    });
    expect(posts).toBe(6);
    expect(backlog).toMatchObject({ failedProbes: 0, leaseId: null });
    expect(backlog!.nextDue - NOW).toBeGreaterThanOrEqual(60 * MINUTE);
  });
});
