import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type EmitterId, newId, type SluiceError, TooManyRequests, type UserId, type WebhookDelivery, type WebhookId } from '#contracts';
import type { FullAccounts } from '#waiting-data';
import type { DeletedRange, EmittedEvent, EventPlace } from '#events';
import type { RecordedEvents } from './history/recorded-events.js';
import { createLog, metrics } from '#observability';
import { untilLocked } from '#testing';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { RoutingWebhookDependents } from '../routing-webhook-dependents.js';
import { DeliveredRepository, KEPT } from './history/delivered.repository.js';
import { DeliveredLog } from './history/delivered-log.js';
import { DeliveriesService } from './history/deliveries.service.js';
import type { Attempt, Delivery } from './delivery.js';
import { deliveryIdOf } from './delivery-id.js';
import { messageId } from './attempt/delivery-headers.js';
import { ParkedDeliveriesRepository } from './store/parked-deliveries.repository.js';
import { UNSHARED } from './store/delivery-store-in-memory-for-tests.js';
import type { ReportOf } from './store/delivery-store.js';
import type { PostgresDeliveryStore } from './store/postgres-delivery-store.js';
import { postgresDeliveryStore } from './store/postgres-delivery-store-for-tests.js';
import { disabledReports, failureReportOf, OwnerNotices } from './notices.js';
import { Targets } from './receivers/targets.js';

const LONG = 3_600_000;
const log = createLog('test', 'silent');
const ATTEMPT: Attempt = { ts: 5, status_code: 500, duration_ms: 2, error: null, response_body: 'no' };
const SUCCESS: Attempt = { ...ATTEMPT, status_code: 200 };

let routing: RoutingFixture;
let store: PostgresDeliveryStore;
let parked: ParkedDeliveriesRepository;
let deliveredRepository: DeliveredRepository;
let delivered: DeliveredLog;
let service: DeliveriesService;
let owner: UserId;
let webhook: WebhookId;
let seq = 0;
/** In how many ms backlogs are due that users have woken. */
let woken: number[] = [];
/** The events that the log has. */
let events: EmittedEvent[] = [];
/** The events that their owner has deleted. */
const deleted = new Set<number>();
const recorded = {
  find: async (_: UserId, emitterId: string, place: EventPlace) =>
    events.find((event) => event.emitterId === emitterId && event.place.seq === place.seq),
  at: async (_: UserId, place: EventPlace) => events.find((event) => event.place.seq === place.seq),
  isDeleted: async (_: UserId, __: string, ___: string, place: EventPlace) => deleted.has(place.seq),
} as RecordedEvents;
const full = {
  refuseFull: (id: UserId) => {
    if (id === fullAccount) throw new TooManyRequests('full');
  },
} as FullAccounts;
let fullAccount: UserId | undefined;
beforeAll(async () => {
  routing = await RoutingFixture.open();
  store = postgresDeliveryStore(routing.database, routing.webhooks);
  deliveredRepository = new DeliveredRepository(routing.database, routing.webhooks, Math.random);
  delivered = new DeliveredLog(deliveredRepository, log);
  routing.backlogs.listen((inMs) => woken.push(inMs));
  parked = new ParkedDeliveriesRepository(routing.database, routing.backlogs);
  service = new DeliveriesService(routing.webhooks, parked, deliveredRepository, delivered, recorded, full);
});
afterAll(() => routing.close());
beforeEach(async () => {
  owner = newId('user');
  webhook = await routing.webhook(owner);
  woken = [];
});

const delivery = (change: Partial<Delivery> = {}): Delivery => {
  seq += 1;
  return {
    webhookId: webhook,
    place: { ms: 1_700_000_000_000 + seq, seq },
    emitterId: 'dc_1',
    stream: '',
    emitId: `e${seq}`,
    json: Buffer.from('{"a":1}'),
    ...change,
  };
};
/** Leases the backlog of the webhook. */
const lease = async () => {
  await routing.database.query("UPDATE backlog SET lease_id = 'own' WHERE webhook_id = $1", [webhook]);
  return { leaseId: 'own' };
};
const park = async (pauseMs: number | null, each = delivery()): Promise<EventPlace> => {
  await store.parkFailed({ delivery: each, delivered: false, attempts: [ATTEMPT], tries: 1, pauseMs });
  return each.place;
};
const deliver = (each = delivery()): EventPlace => {
  delivered.add(each, [SUCCESS]);
  return each.place;
};
/** Notes a delivery that succeeded this long ago. */
const responded = (agoMs: number) => delivered.add(delivery(), [{ ...SUCCESS, ts: Date.now() - agoMs }]);
const list = (change: { limit?: number; after?: string; before?: string; owner_id?: UserId } = {}) =>
  service.list({ owner_id: owner, webhook_id: webhook, limit: 100, ...change });
const errorOf = (promise: Promise<unknown>): Promise<SluiceError | undefined> =>
  promise.then(
    () => undefined,
    (error: SluiceError) => error,
  );
const receiverOf = async (id: WebhookId) => (await store.findTargets([id]))[0]!;
const idOf = (place: EventPlace) => deliveryIdOf(place, webhook);
const due = async (): Promise<number[]> => (await store.take(webhook, 100)).parked.map((parked) => parked.delivery.place.seq);

describe("a webhook's deliveries", () => {
  it('are listed newest first, whatever became of them', async () => {
    const places = [deliver(), await park(LONG), await park(null), deliver()];
    const { data, page_info } = await list();
    expect(data.map(({ id, status }) => [id, status])).toEqual(
      places.map((place, index) => [idOf(place), ['succeeded', 'pending', 'failed', 'succeeded'][index]]).reverse(),
    );
    expect(page_info.total_count).toBe(4);
    const [, failed, pending, first] = data as [WebhookDelivery, WebhookDelivery, WebhookDelivery, WebhookDelivery];
    const place = places[0] as EventPlace;
    expect(first).toEqual({
      id: idOf(place),
      event_id: `${place.ms}-${place.seq}`,
      emitter_id: 'dc_1',
      status: 'succeeded',
      next_attempt_at: null,
      created_at: Math.floor(place.ms / 1000),
      attempts: [SUCCESS],
    });
    expect(failed).toMatchObject({ next_attempt_at: null, attempts: [ATTEMPT] });
    for (const { attempts } of [failed, pending, first])
      expect(JSON.stringify(attempts[0]).replace('500', '200')).toBe(JSON.stringify(SUCCESS));
    expect(Math.abs((pending.next_attempt_at ?? 0) - (Date.now() + LONG) / 1000)).toBeLessThan(60);
  });

  it('lists a delivery that moves from the backlog to the log while the list is read', async () => {
    const each = delivery();
    await park(LONG, each);
    const listParked = parked.list.bind(parked);
    parked.list = async (...args) => {
      const rows = await listParked(...args);
      deliver(each);
      await store.settle(webhook, [{ delivery: each, delivered: true, attempts: [SUCCESS] }], await lease());
      return rows;
    };
    try {
      expect((await list()).data.map(({ id }) => id)).toEqual([idOf(each.place)]);
    } finally {
      parked.list = listParked;
    }
    expect((await list()).data).toMatchObject([{ id: idOf(each.place), status: 'succeeded' }]);
  });

  it('are walked in pages, each of them once', async () => {
    const places: EventPlace[] = [];
    for (let n = 0; n < 11; n++) places.unshift(n % 3 === 0 ? await park(LONG) : deliver());
    const ids = places.map(idOf);
    const walked: string[] = [];
    for (let after: string | undefined; ;) {
      const { data, page_info } = await list({ limit: 4, after });
      walked.push(...data.map(({ id }) => id));
      if (page_info.end_cursor === null) break;
      after = page_info.end_cursor;
    }
    expect(walked).toEqual(ids);
    const { page_info } = await list({ limit: 8 });
    const before = await list({ limit: 3, before: page_info.end_cursor ?? '' });
    expect(before.data.map(({ id }) => id)).toEqual(ids.slice(4, 7));
  });

  it('are nobody else’s', async () => {
    const place = await park(null);
    const theirs = newId('user');
    expect((await errorOf(list({ owner_id: theirs })))?.code).toBe('not_found');
    expect((await errorOf(service.retry({ owner_id: theirs, webhook_id: webhook, id: idOf(place) })))?.code).toBe('not_found');
    expect((await errorOf(service.recover({ owner_id: theirs, webhook_id: webhook, since_ms: 0 })))?.code).toBe('not_found');
    expect(await due()).toEqual([]);
  });

  it('refuse a cursor of something else', async () => {
    expect((await errorOf(list({ after: 'nonsense' })))?.code).toBe('invalid');
    expect((await errorOf(list({ before: Buffer.from('del_1').toString('base64url') })))?.code).toBe('invalid');
  });

  it('go with their webhook', async () => {
    await park(LONG);
    deliver();
    await delivered.flush();
    await routing.webhooksService.delete({ owner_id: owner, id: webhook });
    deliver();
    await delivered.flush();
    for (const table of ['parked_delivery', 'backlog', 'delivered']) {
      expect((await routing.database.query(`SELECT FROM ${table} WHERE webhook_id = $1`, [webhook])).rowCount).toBe(0);
    }
  });
});

describe('what succeeded', () => {
  it('is kept to the newest, in few rows', async () => {
    const places: EventPlace[] = [];
    for (let n = 0; n < 60; n++) {
      for (let k = 0; k < 10; k++) places.push(deliver());
      await delivered.flush();
    }
    const { data } = await list();
    expect(data.map(({ id }) => id)).toEqual(places.slice(-KEPT).map(idOf).reverse());
    const { rows } = await routing.database.query<{ count: number }>(
      'SELECT sum(count)::int AS count FROM delivered WHERE webhook_id = $1',
      [webhook],
    );
    expect(rows[0]?.count).toBeLessThanOrEqual(KEPT + 20 * 10);
  });

  it('is listed to the newest before surplus deliveries are deleted', async () => {
    const places: EventPlace[] = [];
    for (const count of [60, 39, 1, 50]) {
      for (let n = 0; n < count; n++) places.push(deliver());
      await delivered.flush();
    }
    const { page_info } = await list({ limit: 1 });
    expect([page_info.total_count, places.length]).toEqual([150, 150]);
    for (let n = 0; n < 60; n++) deliver();
    await delivered.flush();
    expect((await list({ limit: 1 })).page_info.total_count).toBe(110);
  });

  it('is not parsed beyond what a page shows, or a retry needs', async () => {
    const broken = '{"ms":1,"seq":1,"emitter_id":"dc_1"';
    const entry = (seq: number) => JSON.stringify({ ms: 2, seq, emitter_id: 'dc_1', attempts: [SUCCESS] });
    await routing.database.query('INSERT INTO delivered (webhook_id, count, deliveries) VALUES ($1, 3, $2), ($1, 1, $3)', [
      webhook,
      Buffer.from(`[${broken},${entry(7)},${entry(8)}]`),
      Buffer.from(`[${broken}]`),
    ]);
    expect((await list({ limit: 2 })).data.map(({ id }) => id)).toEqual([8, 7].map((n) => idOf({ ms: 2, seq: n })));
    events = [{ kind: 'event', place: { ms: 2, seq: 7 }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1'), hops: 0 }];
    const retried = await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf({ ms: 2, seq: 7 }) });
    expect(retried).toMatchObject({ status: 'pending', attempts: [SUCCESS] });
  });

  it('is found in its row, in whatever order the events were delivered', async () => {
    const place = (ms: number): EventPlace => ({ ms, seq: 1 });
    const find = (ms: number) => deliveredRepository.find(owner, webhook, place(ms));
    for (const ms of [500, 900, 100, 600]) deliver(delivery({ place: place(ms) }));
    await delivered.flush();
    expect((await Promise.all([500, 900, 100, 600].map(find))).map((entry) => entry?.ms)).toEqual([500, 900, 100, 600]);
    expect(await Promise.all([99, 501, 901].map(find))).toEqual([undefined, undefined, undefined]);
  });

  it('is read back whatever its receiver responded', async () => {
    const text = '","ms":1},{"ms":1,"seq":2,"emitter_id":"x"},\u0001\n';
    delivered.add(delivery(), [{ ...SUCCESS, response_body: text }]);
    deliver();
    const { data } = await list();
    expect(data.map(({ attempts }) => attempts[0]?.response_body)).toEqual(['no', text]);
  });

  it('is written once for a flood, and only what is kept of it', async () => {
    const places: EventPlace[] = [];
    for (let n = 0; n < 1234; n++) places.push(deliver());
    await delivered.flush();
    expect((await list()).data.map(({ id }) => id)).toEqual(places.slice(-KEPT).map(idOf).reverse());
    expect((await routing.database.query('SELECT FROM delivered WHERE webhook_id = $1', [webhook])).rowCount).toBe(1);
  });

  it('is written for a webhook that is locked for a moment, and does not wait for one that is being deleted', async () => {
    const [locked, going] = [webhook, await routing.webhook(owner)];
    await Promise.all([locked, going].map(async (id) => store.markFailing(await receiverOf(id), LONG)));
    const place = deliver();
    responded(0);
    deliver(delivery({ webhookId: going }));
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const deletion = routing.database.transaction(async (transaction) => {
      await transaction.query('DELETE FROM webhook WHERE id = $1', [going]);
      await released;
    });
    const change = routing.database.transaction(async (transaction) => {
      await routing.webhooks.lock(transaction, locked);
      await new Promise((resolve) => setTimeout(resolve, 300));
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await delivered.flush();
    release();
    await Promise.all([deletion, change]);
    expect((await list()).data.map(({ id }) => id)).toContain(idOf(place));
    expect(await store.disable(await receiverOf(locked), [], -1000)).toBe(false);
  });

  it('shows that the endpoint does not fail any more', async () => {
    await store.markFailing(await receiverOf(webhook), LONG);
    responded(0);
    await delivered.flush();
    expect(await store.disable(await receiverOf(webhook), [], -1000)).toBe(false);
  });

  it('does not show that of an endpoint that has failed since', async () => {
    await store.markFailing(await receiverOf(webhook), LONG);
    responded(60_000);
    await delivered.flush();
    expect(await store.disable(await receiverOf(webhook), [], -1000)).toBe(true);
  });
});

const withdraw = (emitterId: EmitterId, change: Partial<DeletedRange> = {}) =>
  parked.withdraw([{ kind: 'delete', place: { ms: Date.now(), seq: 0 }, emitterId, start: null, end: null, stream: null, ...change }]);

describe('the deletion of events', () => {
  let emitter: EmitterId;
  const states = async () => new Map((await list()).data.map(({ id, status, attempts }) => [id, [status, attempts.at(-1)?.error]]));

  beforeEach(async () => {
    emitter = await routing.source(owner);
  });

  it('ends the retries of their deliveries, which cannot be recovered either, and deletes their data', async () => {
    const mine = await park(LONG, delivery({ emitterId: emitter }));
    const [others, later] = [
      await park(LONG),
      await park(LONG, delivery({ emitterId: emitter, place: { ms: Date.now() + LONG, seq: (seq += 1) } })),
    ];
    expect(await withdraw(emitter)).toBe(1);
    expect(await states()).toEqual(
      new Map([
        [idOf(later), ['pending', null]],
        [idOf(others), ['pending', null]],
        [idOf(mine), ['failed', 'the event was deleted']],
      ]),
    );
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: 0 })).toEqual({ count: 0 });
    const { rows } = await routing.database.query('SELECT body FROM parked_delivery WHERE webhook_id = $1 AND ms = $2', [webhook, mine.ms]);
    expect(rows).toEqual([{ body: Buffer.alloc(0) }]);
    expect(await withdraw(emitter)).toBe(0);
  });

  it('is not undone by an attempt that was in progress', async () => {
    const each = delivery({ emitterId: emitter });
    const place = await park(0, each);
    await withdraw(emitter);
    const own = await lease();
    await store.settle(webhook, [{ delivery: each, delivered: false, attempts: [ATTEMPT, ATTEMPT], tries: 2, pauseMs: 0 }], own);
    expect((await states()).get(idOf(place))).toEqual(['failed', 'the event was deleted']);
    expect((await store.take(webhook, 10)).parked).toEqual([]);
  });

  it.each<[string, Partial<DeletedRange>, string[]]>([
    ['of one stream', { stream: 'x' }, ['x']],
    ['of all streams that users name', { stream: '*' }, ['', 'x']],
    ['of every stream', { stream: null }, ['', 'x', '$errors']],
    ['that ends earlier', { end: { ms: 1, seq: 1 } }, []],
    ['that begins later', { start: { ms: Date.now() + LONG, seq: 1 } }, []],
    ['of another emitter', { emitterId: 'dc_1' }, []],
  ])('concerns the range that it names: one %s', async (_, range, expected) => {
    const places: [string, EventPlace][] = [];
    for (const stream of ['', 'x', '$errors']) places.push([stream, await park(LONG, delivery({ emitterId: emitter, stream }))]);
    await withdraw(emitter, range);
    const found = await states();
    expect(places.filter(([, place]) => found.get(idOf(place))?.[0] === 'failed').map(([stream]) => stream)).toEqual(expected);
  });

  it('needs few statements for many ranges of which few have deliveries', async () => {
    const places = [];
    for (let n = 0; n < 3; n++) places.push(await park(LONG, delivery({ emitterId: emitter })));
    const range = (place: EventPlace): DeletedRange => ({
      ...{ kind: 'delete', emitterId: emitter, place: { ms: Date.now(), seq: 0 }, stream: null },
      ...{ start: place, end: place },
    });
    const others = Array.from({ length: 500 }, (_, n) => range({ ms: 5, seq: n }));
    const query = jest.spyOn(routing.database, 'query');
    try {
      expect(await parked.withdraw([...others, range(places[2]!), range(places[0]!)])).toBe(2);
      expect(query.mock.calls.length).toBeLessThan(10);
    } finally {
      query.mockRestore();
    }
    const found = await states();
    expect(places.map((place) => found.get(idOf(place))?.[0])).toEqual(['failed', 'pending', 'failed']);
  });
});

describe('retrying', () => {
  it('makes a failed delivery due, with a new schedule', async () => {
    const place = await park(null);
    const retried = await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(woken).toEqual([0]);
    expect(retried).toMatchObject({ status: 'pending', attempts: [ATTEMPT] });
    expect((await store.take(webhook, 10)).parked).toMatchObject([{ fresh: false, tries: 0, attempts: [ATTEMPT] }]);
    expect((await store.claim(100, 'x', 1000, UNSHARED)).map(({ webhookId }) => webhookId)).toContain(webhook);
  });

  it('is refused if the event was deleted', async () => {
    const place = await park(LONG);
    deleted.add(place.seq);
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) })))?.code).toBe('conflict');
    expect(await due()).toEqual([]);
  });

  it('retrying a delivery that succeeded shows one delivery, and counts one', async () => {
    const place = deliver();
    events = [{ kind: 'event', place, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1'), hops: 0 }];
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    deliver();
    const { data, page_info } = await list();
    expect([data.length, page_info.total_count]).toEqual([2, 2]);
  });

  it('makes a pending one due at once', async () => {
    const place = await park(LONG);
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(await due()).toEqual([place.seq]);
  });

  it('keeps the time at which the schedule would attempt it, until that attempt has ended', async () => {
    const place = await park(LONG);
    const taken = async () => (await store.take(webhook, 10)).parked[0]!;
    const retry = () => service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    await retry();
    await retry();
    expect((await taken()).dueInMs).toBeGreaterThan(LONG / 2);
    expect((await store.takeProbe(webhook, 0)).parked[0]!.dueInMs).toBeGreaterThan(LONG / 2);
    const failed = { delivery: delivery({ place }), delivered: false as const, attempts: [ATTEMPT], tries: 1 };
    await store.settle(webhook, [{ ...failed, pauseMs: 0 }], await lease());
    expect((await taken()).dueInMs).toBeLessThanOrEqual(0);
    await store.settle(webhook, [{ ...failed, pauseMs: null }], await lease());
    await retry();
    expect((await taken()).dueInMs).toBeLessThanOrEqual(0);
  });

  it('leaves one that was never attempted before the later ones of its emitter', async () => {
    const json = Buffer.alloc(100_000, '1');
    const [first, second, third] = [delivery({ json }), delivery({ json }), delivery({ json })];
    await store.spill(webhook);
    for (const each of [first, second, third]) await store.parkFresh(webhook, [each]);
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(first.place) });
    const { parked: taken } = await store.take(webhook, 100, { bytes: 250_000 });
    expect(taken.map((each) => each.delivery.place.seq)).toEqual([first.place.seq, second.place.seq]);
  });

  it('makes a delivery the next one, although the receiver counts as failing and others were never attempted', async () => {
    const [first, second] = [await park(LONG), await park(LONG)];
    await store.openBreaker(await receiverOf(webhook), LONG);
    const fresh = delivery();
    await store.parkFresh(webhook, [fresh]);
    const probed = async () => (await store.takeProbe(webhook, 0)).parked[0]?.delivery.place.seq;
    expect(await probed()).toBe(fresh.place.seq);
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(second) });
    expect(await probed()).toBe(second.seq);
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(first) });
    expect(await probed()).toBe(second.seq);
    const own = await lease();
    const again = { delivered: false as const, attempts: [ATTEMPT, ATTEMPT], tries: 2 };
    await store.settle(webhook, [{ delivery: delivery({ place: second }), ...again, pauseMs: 0 }], own);
    expect(await probed()).toBe(first.seq);
    await store.settle(webhook, [{ delivery: delivery({ place: first }), ...again, pauseMs: LONG }], own);
    expect(await probed()).toBe(fresh.place.seq);
  });

  it('makes one that succeeded due again, as the same message, as long as its event is there', async () => {
    const place = deliver();
    events = [{ kind: 'event', place, emitterId: 'dc_1', stream: 'mine', emitId: 'same', json: Buffer.from('{"b":2}'), hops: 0 }];
    const retried = await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(woken).toEqual([0]);
    expect(retried).toMatchObject({ id: idOf(place), status: 'pending', attempts: [SUCCESS] });
    const [parked] = (await store.take(webhook, 10)).parked;
    expect(parked).toMatchObject({ fresh: false, tries: 0, delivery: { emitId: 'same', json: Buffer.from('{"b":2}') } });
    expect(messageId(parked!.delivery)).toBe(messageId({ emitterId: 'dc_1', stream: 'mine', emitId: 'same', webhookId: webhook }));
    await store.settle(webhook, [{ delivery: parked!.delivery, delivered: true, attempts: [SUCCESS, SUCCESS] }]);
    delivered.add(parked!.delivery, [SUCCESS, SUCCESS]);
    expect((await list()).data).toMatchObject([{ id: idOf(place), status: 'succeeded', attempts: [SUCCESS, SUCCESS] }]);
  });

  describe('a delivery that succeeded and is not listed any more', () => {
    /** An event of this emitter, and whether the webhook is retried for it. @param ago since the event, in ms */
    const retryOld = async (emitterId: EmitterId, { stream = '', ago = 3_600_000 } = {}): Promise<string> => {
      const one = delivery({ emitterId, stream, place: { ms: Date.now() - ago, seq: ++seq } });
      events = [{ ...one, kind: 'event', hops: 0 }];
      const retried = service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(one.place) });
      return retried.then(
        ({ status, attempts }) => `${status} after ${attempts.length} attempts`,
        ({ code }: SluiceError) => code,
      );
    };
    const old = (ownerId = owner) => routing.source(ownerId, { created_at_ms: 0 });
    /** Subscribes the webhook, as of before these events. */
    const subscribe = async (emitter_id: string, event_name = '') => {
      const { id } = await routing.service.create({ owner_id: owner, emitter_id, listener_id: webhook, event_name });
      await routing.database.query("UPDATE subscription SET id = 'sub_00' || substr(id, 7) WHERE id = $1", [id]);
    };

    it('is retried while the log has its event and the webhook is subscribed', async () => {
      const source = await old();
      expect(await retryOld(source)).toBe('not_found');
      await subscribe('dc_*', 'orders');
      expect(await retryOld(source)).toBe('not_found');
      expect(await retryOld(source, { stream: 'orders' })).toBe('pending after 0 attempts');
      await subscribe(source);
      expect(await retryOld(source)).toBe('pending after 0 attempts');
      const other = await old(newId('user'));
      await subscribe('dc_*');
      expect(await retryOld(other)).toBe('not_found');
      const late = await old();
      await routing.service.create({ owner_id: owner, emitter_id: late, listener_id: webhook, event_name: 'late' });
      expect(await retryOld(late, { stream: 'late' })).toBe('not_found');
    });

    it('is only retried if it cannot be under way', async () => {
      const source = await old();
      await subscribe(source);
      expect(await retryOld(source, { ago: 30_000 })).toBe('not_found');
      deliver(delivery({ emitterId: source, place: { ms: Date.now(), seq: ++seq } }));
      expect(await retryOld(source, { ago: 30_000 })).toBe('pending after 0 attempts');
    });
  });

  it('retrying a delivery that succeeded is refused while the account is full; a parked one is retried', async () => {
    const [succeeded, failed] = [deliver(), await park(null)];
    events = [{ kind: 'event', place: succeeded, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1'), hops: 0 }];
    const retry = (place: EventPlace) => service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    fullAccount = owner;
    expect((await errorOf(retry(succeeded)))?.code).toBe('too_many_requests');
    expect((await retry(failed)).status).toBe('pending');
    fullAccount = undefined;
    expect((await retry(succeeded)).status).toBe('pending');
  });

  it('is refused for one whose event is gone, or that never was', async () => {
    const place = deliver();
    events = [];
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) })))?.code).toBe('conflict');
    const withdrawn = await park(null);
    await routing.database.query("UPDATE parked_delivery SET body = '' WHERE seq = $1", [withdrawn.seq]);
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(withdrawn) })))?.code).toBe('conflict');
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: 'del_1' })))?.code).toBe('not_found');
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf({ ms: 1, seq: 1 }) })))?.code).toBe('not_found');
  });
});

describe('the metric of spilled webhooks', () => {
  const spills = async () => {
    const { values } = await metrics.getSingleMetric('sluice_webhooks_spilled_total')!.get();
    return values.map(({ labels, value }) => [labels.reason, value] as const);
  };

  it('counts a webhook once, whatever is parked in flight', async () => {
    metrics.resetMetrics();
    for (let n = 0; n < 3; n++) await store.parkInFlight(delivery(), LONG);
    await store.openBreaker(await receiverOf(webhook), LONG);
    expect(await spills()).toEqual([['slow', 1]]);
    await store.openBreaker(await receiverOf(await routing.webhook(owner)), LONG);
    expect(new Map(await spills()).get('failing')).toBe(1);
  });
});

it('counts a receiver as failing from its first failure on, also after another URL of its webhook failed', async () => {
  await store.markFailing(await receiverOf(webhook), LONG);
  const update = (url: string) => routing.webhooksService.update({ id: webhook, owner_id: owner, url });
  await update((await receiverOf(webhook)).url);
  expect(await routing.database.query('SELECT FROM webhook WHERE id = $1 AND failing_since IS NOT NULL', [webhook])).toMatchObject({
    rowCount: 1,
  });
  await update('https://example.com/new');
  expect(await store.disable(await receiverOf(webhook), [], -1000)).toBe(false);
});

describe('activating a webhook', () => {
  it('makes the deliveries that wait for it due at once', async () => {
    const update = (change: { active: boolean }) => routing.webhooksService.update({ id: webhook, owner_id: owner, ...change });
    await update({ active: true });
    await park(LONG);
    await update({ active: false });
    expect(woken).toEqual([]);
    await update({ active: true });
    expect(woken).toEqual([0]);
  });
});

/** More than fit into a batch. */
const MANY = 6000;
const parkMany = async (emitterId: EmitterId): Promise<void> => {
  await park(null, delivery({ emitterId, place: { ms: 1, seq: 0 } }));
  await routing.database.query(
    `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at, failed_at)
     SELECT webhook_id, ms, n, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at, failed_at
     FROM parked_delivery, generate_series(1, $2::int - 1) AS n WHERE webhook_id = $1 AND ms = 1`,
    [webhook, MANY],
  );
};

const givenUp = async () => (await metrics.getSingleMetric('sluice_deliveries_given_up_total')!.get()).values[0]?.value ?? 0;

describe('a large backlog', () => {
  it('is recovered, given up and withdrawn as a whole', async () => {
    const emitter = await routing.source(owner);
    await parkMany(emitter);
    const waiting = async () =>
      (await routing.database.query('SELECT FROM parked_delivery WHERE webhook_id = $1 AND due_at IS NOT NULL', [webhook])).rowCount;
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: 0 })).toEqual({ count: MANY });
    expect(await waiting()).toBe(MANY);
    await store.disable(await receiverOf(webhook), []);
    const before = await givenUp();
    let batches = 0;
    while (await store.giveUp(webhook)) batches += 1;
    expect((await givenUp()) - before).toBe(MANY);
    expect(batches).toBeGreaterThan(1);
    expect(await waiting()).toBe(0);
    expect(await withdraw(emitter)).toBe(MANY);
    // other tests delete a batch
    while ((await parked.deleteGivenUp(-1000)) > 0);
  });
});

it('counts a delivery that is given up after an attempt: its first one, or that of a parked delivery', async () => {
  const before = await givenUp();
  await park(null);
  const place = await park(LONG);
  const [settled, lost] = [delivery({ place }), { attempts: [], tries: 9, pauseMs: null }];
  await store.settle(webhook, [{ delivery: settled, delivered: false, ...lost }], await lease());
  expect((await givenUp()) - before).toBe(2);
});

describe('recovering', () => {
  it('makes all due that has failed since, and nothing else', async () => {
    const places = [await park(null), await park(null)];
    await park(LONG);
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: Date.now() + 60_000 })).toEqual({ count: 0 });
    expect(await due()).toEqual([]);
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: Date.now() - 60_000 })).toEqual({ count: 2 });
    expect(await due()).toEqual(places.map((place) => place.seq));
    expect(woken).toEqual([0]);
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: 0 })).toEqual({ count: 0 });
  });
});

describe('deliveries of a webhook that is deleted', () => {
  const backlogs = async () => (await routing.database.query('SELECT FROM backlog WHERE webhook_id = $1', [webhook])).rowCount;

  it.each<[string, (place: EventPlace) => Promise<unknown>]>([
    ['retried', (place) => parked.retry(owner, webhook, place)],
    ['recovered', () => parked.recover(owner, webhook, 0)],
  ])('are not %s meanwhile', async (_, change) => {
    const places: EventPlace[] = [];
    for (let n = 0; n < 1001; n++) places.push(await park(null));
    let changed: Promise<unknown> | undefined;
    await routing.database.transaction(async (transaction) => {
      await transaction.query('DELETE FROM webhook WHERE id = $1', [webhook]);
      await new RoutingWebhookDependents(routing.backlogs).webhookDeleted(transaction, owner, webhook);
      changed = change(places.at(-1)!);
      await Promise.race([changed, untilLocked(routing)]);
    });
    await changed;
    expect([await backlogs(), await due()]).toEqual([0, []]);
    while (await parked.deleteOfDeletedWebhooks());
    expect((await routing.database.query('SELECT FROM parked_delivery WHERE webhook_id = $1', [webhook])).rowCount).toBe(0);
  });
});

it.each(['succeeds', 'fails'])('the outcome of a delivery that %s is stored before its backlog is locked', async (outcome) => {
  const each = delivery();
  await store.spill(webhook);
  await store.parkFresh(webhook, [each]);
  await routing.database.query("UPDATE backlog SET next_due = 'infinity' WHERE webhook_id = $1", [webhook]);
  let settled: Promise<unknown> | undefined;
  await routing.database.transaction(async (transaction) => {
    await transaction.query('SELECT FROM parked_delivery WHERE webhook_id = $1 FOR UPDATE', [webhook]);
    settled = store.settle(webhook, [
      outcome === 'succeeds'
        ? { delivery: each, delivered: true, attempts: [SUCCESS] }
        : { delivery: each, delivered: false, attempts: [ATTEMPT], tries: 1, pauseMs: LONG },
    ]);
    await untilLocked(routing);
    await transaction.query('SELECT FROM backlog WHERE webhook_id = $1 FOR UPDATE NOWAIT', [webhook]);
  });
  await settled;
  const { rows } = await routing.database.query<{ due: boolean }>('SELECT next_due <= now() AS due FROM backlog WHERE webhook_id = $1', [
    webhook,
  ]);
  expect(rows).toEqual([{ due: true }]);
});

it('a backlog can be leased although it was leased while the clock of the database was an hour ahead', async () => {
  await store.spill(webhook);
  const claimed = async () => (await store.claim(1000, 'own', 3_600_000, UNSHARED)).map(({ webhookId }) => webhookId);
  expect(await claimed()).toContain(webhook);
  expect(await store.msToNext()).toBe(0);
  expect(await claimed()).toContain(webhook);
});

it('a delivery can be taken although its attempt began while the clock of the database was an hour ahead', async () => {
  const lost = delivery();
  await store.parkInFlight(lost, LONG);
  await routing.database.query(
    "UPDATE parked_delivery SET parked_at = parked_at + interval '1 hour', in_flight_until = in_flight_until + interval '1 hour' WHERE webhook_id = $1",
    [webhook],
  );
  expect(await store.take(webhook, 10)).toMatchObject({ parked: [{ delivery: lost }], inFlight: false });
  expect((await store.takeProbe(webhook, 0)).parked[0]?.delivery).toEqual(lost);
  const [claim] = (await store.claim(1000, 'own', LONG, UNSHARED)).filter(({ webhookId }) => webhookId === webhook);
  await store.release(claim!, { when: 'next due' });
  expect(await store.msToNext()).toBe(0);
});

describe('after the clock of the database was ahead', () => {
  const ahead = (interval: string) =>
    routing.database.transaction(async (transaction) => {
      await transaction.query(`UPDATE backlog SET next_due = next_due + interval '${interval}' WHERE webhook_id = $1`, [webhook]);
      await transaction.query(
        `UPDATE parked_delivery SET due_at = due_at + interval '${interval}', parked_at = parked_at + interval '${interval}' WHERE webhook_id = $1`,
        [webhook],
      );
      await transaction.query(
        `UPDATE webhook SET failure_told_at = now() + interval '${interval}', last_failed_at = now() + interval '${interval}',
           failing_since = now() + interval '${interval}' WHERE id = $1`,
        [webhook],
      );
    });
  const DAY_AND_A_HALF = 36 * LONG;
  const isDue = async () => (await store.claim(1000, 'own', 1000, UNSHARED)).some(({ webhookId }) => webhookId === webhook);

  it('a probe that was set meanwhile is made, and one that a receiver has requested for later is not', async () => {
    const requesting = await routing.webhook(owner);
    for (const id of [webhook, requesting]) await store.openBreaker(await receiverOf(id), LONG);
    await ahead('1 day');
    expect(await routing.backlogs.correctProbes(LONG + 60_000)).toBe(1);
    expect(await isDue()).toBe(true);
    expect(await routing.backlogs.correctProbes(LONG + 60_000)).toBe(0);
  });

  it.each(['1 hour', '1 year'])('by %s, retries that were set meanwhile are made, and no others', async (interval) => {
    const [early, tried] = [await park(1000), await park(1000)];
    await ahead(interval);
    // its schedule had begun before
    await routing.database.query('UPDATE parked_delivery SET parked_at = now() WHERE webhook_id = $1 AND seq = $2', [webhook, tried.seq]);
    await park(24 * LONG);
    const expected = interval === '1 year' ? [early.seq, tried.seq] : [early.seq];
    expect(await parked.correctDeliveries(DAY_AND_A_HALF)).toBe(expected.length);
    expect(await isDue()).toBe(true);
    expect(await due()).toEqual(expected);
    expect(await parked.correctDeliveries(DAY_AND_A_HALF)).toBe(0);
  });

  it('deliveries that were parked meanwhile without an attempt are made', async () => {
    await store.spill(webhook);
    const fresh = delivery();
    await store.parkFresh(webhook, [fresh]);
    await ahead('1 day');
    expect(await isDue()).toBe(false);
    expect(await parked.correctDeliveries(DAY_AND_A_HALF)).toBe(1);
    expect(await isDue()).toBe(true);
    expect(await parked.correctDeliveries(DAY_AND_A_HALF)).toBe(0);
  });

  it('a receiver that failed meanwhile begins to fail with its next failure', async () => {
    await ahead('1 day');
    await store.markFailing(await receiverOf(webhook), LONG);
    expect(await store.disable(await receiverOf(webhook), [], -1000)).toBe(true);
  });
});

describe('sweeping', () => {
  beforeEach(() => routing.database.query('DELETE FROM parked_delivery'));
  const ALL = { parkedForMs: -1000, dueForMs: -2 * LONG };

  it('reads the events of few webhooks at a time, and gives up the deliveries of all', async () => {
    const webhooks = await Promise.all(Array.from({ length: 50 }, () => routing.webhook(owner)));
    for (const webhookId of webhooks) await park(LONG, delivery({ webhookId }));
    const [read, givenUp]: [number[], number[]] = [[], []];
    for (let more = true; more;) {
      const expired = await parked.findExpired(ALL);
      read.push(expired.length);
      const result = await parked.giveUpExpired(
        ALL,
        expired.map(({ webhookId }) => webhookId),
      );
      givenUp.push(result.count);
      more = result.more;
    }
    expect(read).toEqual([20, 20, 10, 0]);
    expect(givenUp).toEqual(read);
  });

  it('gives up what has waited too long, and shows an example of each webhook', async () => {
    const other = await routing.webhook(owner);
    const places = [await park(LONG), await park(LONG)];
    await park(LONG, delivery({ webhookId: other }));
    const before = await givenUp();
    const examples = await parked.findExpired(ALL);
    const webhooks = examples.map(({ webhookId }) => webhookId);
    expect(await parked.giveUpExpired(ALL, [])).toEqual({ count: 0, more: false });
    const { count } = await parked.giveUpExpired(ALL, webhooks);
    expect((await givenUp()) - before).toBe(count);
    expect(count).toBeGreaterThanOrEqual(3);
    expect(examples.filter(({ webhookId }) => webhookId === webhook)).toMatchObject([
      { place: places[1], attempts: [ATTEMPT], wasSuspended: false },
    ]);
    expect((await list()).data.map(({ status }) => status)).toEqual(['failed', 'failed']);
    expect([await parked.findExpired(ALL), await parked.giveUpExpired(ALL, webhooks)]).toEqual([[], { count: 0, more: false }]);
  });

  it('gives up no delivery before its next attempt, which the receiver may have requested for long after the end of the schedule', async () => {
    const place = await park(LONG);
    const later = (ms: number) =>
      routing.database.query(
        "UPDATE parked_delivery SET parked_at = parked_at - $1 * interval '1 ms', due_at = due_at - $1 * interval '1 ms'",
        [ms],
      );
    const expiry = { parkedForMs: LONG / 10, dueForMs: LONG / 10 };
    const giveUp = async () => [(await parked.findExpired(expiry)).length, (await parked.giveUpExpired(expiry, [webhook])).count];
    await later(LONG / 2);
    expect(await giveUp()).toEqual([0, 0]);
    // due, but not for long: its attempt may have to wait
    await later(LONG / 2);
    expect(await giveUp()).toEqual([0, 0]);
    expect((await parked.find(owner, webhook, place))!.due_at).not.toBeNull();
    await later(LONG / 2);
    expect(await giveUp()).toEqual([1, 1]);
  });

  it('does not count the time for which an account was suspended', async () => {
    const [suspendedOwner, days] = [newId('user'), 24 * 3_600_000];
    const suspended = await routing.webhook(suspendedOwner);
    const place = await park(LONG, delivery({ webhookId: suspended }));
    await store.markFailing(await receiverOf(suspended), LONG);
    await routing.webhooks.suspend(suspendedOwner, true);
    const age = (table: string, column: string) =>
      routing.database.query(`UPDATE ${table} SET ${column} = ${column} - interval '6 days' WHERE ${column} IS NOT NULL`);
    const isWaiting = async () => (await parked.find(suspendedOwner, suspended, place))?.due_at !== null;
    await age('parked_delivery', 'parked_at');
    await age('webhook', 'failing_since');
    const giveUp = async () => {
      const expiry = { ...ALL, parkedForMs: 4 * days };
      const found = (await parked.findExpired(expiry)).find(({ webhookId }) => webhookId === suspended);
      await parked.giveUpExpired(expiry, [suspended]);
      return found?.wasSuspended;
    };
    expect([await giveUp(), await isWaiting()]).toEqual([true, true]);
    await age('parked_delivery', 'parked_at');
    await routing.webhooks.suspend(suspendedOwner, false);
    expect([await giveUp(), await isWaiting()]).toEqual([true, true]);
    // its receiver fails for the first time since
    await store.markFailing(await receiverOf(suspended), LONG);
    expect(await store.disable(await receiverOf(suspended), [], 5 * days)).toBe(false);
    await age('parked_delivery', 'parked_at');
    await age('webhook', 'resumed_at');
    expect([await giveUp(), await isWaiting()]).toEqual([false, false]);
  });

  it('deletes deliveries that were given up long ago', async () => {
    await park(null);
    const pending = await park(LONG);
    await parked.deleteGivenUp(LONG);
    expect((await list()).data).toHaveLength(2);
    expect(await parked.deleteGivenUp(-1000)).toBeGreaterThanOrEqual(1);
    expect((await list()).data.map(({ id }) => id)).toEqual([idOf(pending)]);
  });
});

describe('the owner', () => {
  const outbox = async () => {
    const { rows } = await routing.database.query<{ topic: string; key: string; value: Buffer }>(
      'DELETE FROM outbox RETURNING topic, key, value',
    );
    return rows.map(({ topic, key, value }) => ({ topic, key, value: JSON.parse(value.toString()) as Record<string, unknown> }));
  };
  const target = async () => {
    const found = await new Targets(log, store, routing.box).load(webhook);
    if (!found) throw new Error('no target');
    return found;
  };
  const givingUp = (each: Delivery) => ({ delivery: each, delivered: false as const, attempts: [ATTEMPT], tries: 1, pauseMs: null });
  const giveUp = async (each: Delivery, statement: 'settle' | 'parkFailed' = 'parkFailed') => {
    const failed = givingUp(each);
    const found = await target();
    const report: ReportOf = (failures) => failureReportOf(found, failures);
    if (statement === 'settle') await store.settle(webhook, [failed], { report });
    else await store.parkFailed(failed, report);
  };
  const givenUp = async () => {
    const { rows } = await routing.database.query<{ seq: number }>(
      'SELECT seq FROM parked_delivery WHERE webhook_id = $1 AND due_at IS NULL',
      [webhook],
    );
    return rows.map((row) => row.seq);
  };

  it('gets an event on $errors about a delivery that was given up, once per webhook and hour', async () => {
    const notices = new OwnerNotices(log, routing.database, routing.webhooks);
    await outbox();
    await giveUp(delivery({ emitterId: 'p_1', stream: 'x' }));
    await giveUp(delivery());
    await notices.expired(await target(), delivery(), ATTEMPT);
    expect(await outbox()).toEqual([
      {
        topic: 'events',
        key: 'p_1',
        value: {
          error: expect.objectContaining({ code: 'DeliveryFailed', message: expect.stringContaining('the receiver returned 500') }),
          original_event: { a: 1 },
          original_context: expect.objectContaining({ webhook_id: webhook, workflow_id: 'p_1', event_name: 'x', owner_id: owner }),
        },
      },
    ]);
  });

  it('gets no such event about a delivery that stays due, because a user has requested it during its last attempt', async () => {
    await outbox();
    const each = delivery();
    const revision = await store.parkInFlight(each, LONG);
    await parked.retry(owner, webhook, each.place);
    const found = await target();
    await store.settle(webhook, [{ ...givingUp(each), revision }], { report: (failures) => failureReportOf(found, failures) });
    expect([await outbox(), await givenUp()]).toEqual([[], []]);
    // not counted as a report
    await giveUp(delivery());
    expect(await outbox()).toHaveLength(1);
  });

  it('gets such an event although the last one was stored while the clock of the database was ahead', async () => {
    await outbox();
    await routing.database.query("UPDATE webhook SET failure_told_at = now() + interval '1 day' WHERE id = $1", [webhook]);
    await giveUp(delivery());
    await giveUp(delivery());
    expect(await outbox()).toHaveLength(1);
  });

  it('gets an event on $errors about a delivery that has waited too long', async () => {
    const notices = new OwnerNotices(log, routing.database, routing.webhooks);
    await outbox();
    await notices.expired(await target(), delivery(), undefined);
    await notices.expired(await target(), delivery(), undefined);
    expect((await outbox()).map(({ topic, key }) => [topic, key])).toEqual([['events', 'dc_1']]);
  });

  it('gets no event about the failed delivery of such an event', async () => {
    await outbox();
    await giveUp(delivery({ stream: '$errors', json: Buffer.from('{"error":{"code":"DeliveryFailed"}}') }));
    expect(await outbox()).toEqual([]);
    await giveUp(delivery({ stream: '$errors', json: Buffer.from('null') }));
    expect(await outbox()).toHaveLength(1);
  });

  it.each(['settle', 'parkFailed'] as const)(
    'gets the event on $errors and the delivery is given up, or neither, if the statement %s fails',
    async (statement) => {
      await outbox();
      const each = delivery();
      if (statement === 'settle') await store.parkInFlight(each, LONG);
      jest.spyOn(ParkedDeliveriesRepository.prototype, statement).mockRejectedValueOnce(new Error('the connection is lost'));
      await expect(giveUp(each, statement)).rejects.toThrow('the connection is lost');
      expect([await outbox(), await givenUp()]).toEqual([[], []]);
      await giveUp(each, statement);
      expect([(await outbox()).length, await givenUp()]).toEqual([1, [each.place.seq]]);
    },
  );

  it('has a delivery given up whose event on $errors cannot be stored', async () => {
    await outbox();
    const each = delivery();
    const report = failureReportOf(await target(), [givingUp(each)])!;
    await store.parkFailed(givingUp(each), () => ({ ...report, headers: { text: '\0' } }));
    expect([await outbox(), await givenUp()]).toEqual([[], [each.place.seq]]);
    // not counted as a report
    await giveUp(delivery());
    expect(await outbox()).toHaveLength(1);
  });

  it('gets a fact and an event on $errors about a webhook that was disabled, both or none', async () => {
    const each = delivery({ emitterId: 'p_1', stream: 'x' });
    const disable = async (ifFailingForMs?: number) => {
      const found = await target();
      return store.disable(found, disabledReports(found, 'gone', each), ifFailingForMs);
    };
    await outbox();
    expect(await disable(LONG)).toBe(false);
    expect(await outbox()).toEqual([]);
    expect(await disable()).toBe(true);
    expect(await outbox()).toEqual([
      {
        topic: 'routing.error.raised',
        key: owner,
        value: expect.objectContaining({ owner_id: owner, subject_id: webhook, code: 'WebhookDisabled' }),
      },
      {
        topic: 'events',
        key: 'p_1',
        value: {
          error: expect.objectContaining({ code: 'WebhookDisabled', message: expect.stringContaining('410 Gone') }),
          original_event: { a: 1 },
          original_context: expect.objectContaining({ webhook_id: webhook, workflow_id: 'p_1', event_name: 'x', owner_id: owner }),
        },
      },
    ]);
  });
});

describe('parking while the backlog ends', () => {
  it('loses nothing, and leaves nothing behind', async () => {
    let [parked, direct, settled] = [0, 0, 0];
    const isEnough = () => parked > 200 && direct > 5;
    const arrive = async () => {
      while (!isEnough()) {
        const mode = await store.parkFresh(webhook, [delivery()]);
        if (mode === 'spilled') parked += 1;
        else if (mode === 'direct') direct += 1;
      }
    };
    const spill = async () => {
      while (!isEnough()) {
        await store.spill(webhook);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const drain = async () => {
      for (let idle = 0; ;) {
        const [claim] = (await store.claim(1000, `lease ${(seq += 1)}`, 60_000, UNSHARED)).filter(({ webhookId }) => webhookId === webhook);
        if (!claim) {
          if (isEnough() && (idle += 1) > 100) return;
          await new Promise((resolve) => setTimeout(resolve, 2));
          continue;
        }
        for (;;) {
          const { parked: some } = await store.take(webhook, 10);
          await store.settle(
            webhook,
            some.map((each) => ({ delivery: each.delivery, delivered: true, attempts: [SUCCESS] })),
          );
          settled += some.length;
          if (some.length < 10) await store.startClosing(claim, 5);
          if (some.length === 0 && (await store.finishClosing(claim)) === 'direct') break;
        }
      }
    };
    await Promise.all([arrive(), arrive(), arrive(), spill(), drain(), drain()]);
    expect(settled).toBe(parked);
    expect((await store.findTargets([webhook]))[0]?.mode).toBe('direct');
    expect((await routing.database.query('SELECT FROM backlog WHERE webhook_id = $1', [webhook])).rowCount).toBe(0);
  });
});
