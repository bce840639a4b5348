import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId, type SluiceError, type UserId, type WebhookDelivery, type WebhookId } from '#contracts';
import type { EmittedEvent, EventPlace } from '#events';
import type { RecordedEvents } from './history/recorded-events.js';
import { createLog } from '#observability';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { DeliveredLog, DeliveredRepository, KEPT } from './history/delivered.repository.js';
import { DeliveriesService } from './history/deliveries.service.js';
import { type Attempt, type Delivery, deliveryIdOf } from './delivery.js';
import { messageId } from './attempt/delivery-headers.js';
import { ParkedDeliveriesRepository } from './store/parked-deliveries.repository.js';
import type { PostgresDeliveryStore } from './store/delivery-store.js';
import { postgresDeliveryStore } from './store/postgres-delivery-store-for-tests.js';
import { OwnerAlerts } from './alerts/alerts.js';
import { Targets } from './receivers/targets.js';

const LONG = 3_600_000;
const log = createLog('test', 'silent');
const ATTEMPT: Attempt = { ts: 5, status_code: 500, duration_ms: 2, error: null, response_body: 'no' };
const SUCCESS: Attempt = { ...ATTEMPT, status_code: 200 };

let routing: RoutingFixture;
let store: PostgresDeliveryStore;
let delivered: DeliveredLog;
let service: DeliveriesService;
let owner: UserId;
let webhook: WebhookId;
let seq = 0;
/** The events that the log has. */
let events: EmittedEvent[] = [];
const recorded = {
  find: async (_: UserId, emitterId: string, place: EventPlace) =>
    events.find((event) => event.emitterId === emitterId && event.place.seq === place.seq),
} as RecordedEvents;
beforeAll(async () => {
  routing = await RoutingFixture.open();
  store = postgresDeliveryStore(routing.database, routing.webhooks);
  const deliveredRepository = new DeliveredRepository(routing.database, routing.webhooks);
  delivered = new DeliveredLog(deliveredRepository, log);
  service = new DeliveriesService(
    routing.webhooks,
    new ParkedDeliveriesRepository(routing.database),
    deliveredRepository,
    delivered,
    recorded,
  );
});
afterAll(() => routing.close());
beforeEach(async () => {
  owner = newId('user');
  webhook = await routing.webhook(owner);
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
const park = async (pauseMs: number | null, each = delivery()): Promise<EventPlace> => {
  await store.parkFailed({ delivery: each, delivered: false, attempts: [ATTEMPT], tries: 1, pauseMs });
  return each.place;
};
const deliver = (each = delivery()): EventPlace => {
  delivered.add(each, [SUCCESS]);
  return each.place;
};
const list = (change: { limit?: number; after?: string; before?: string; owner_id?: UserId } = {}) =>
  service.list({ owner_id: owner, webhook_id: webhook, limit: 100, ...change });
const errorOf = (promise: Promise<unknown>): Promise<SluiceError | undefined> =>
  promise.then(
    () => undefined,
    (error: SluiceError) => error,
  );
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
    expect(Math.abs((pending.next_attempt_at ?? 0) - (Date.now() + LONG) / 1000)).toBeLessThan(60);
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

  it('is written once for a flood, and only what is kept of it', async () => {
    const places: EventPlace[] = [];
    for (let n = 0; n < 1234; n++) places.push(deliver());
    await delivered.flush();
    expect((await list()).data.map(({ id }) => id)).toEqual(places.slice(-KEPT).map(idOf).reverse());
    expect((await routing.database.query('SELECT FROM delivered WHERE webhook_id = $1', [webhook])).rowCount).toBe(1);
  });

  it('shows that the endpoint does not fail any more', async () => {
    await store.markFailing(webhook);
    deliver();
    await delivered.flush();
    expect(await store.disable(webhook, -1000)).toBe(false);
  });
});

describe('retrying', () => {
  it('makes a failed delivery due, with a new schedule', async () => {
    const place = await park(null);
    const retried = await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(retried).toMatchObject({ status: 'pending', attempts: [ATTEMPT] });
    expect((await store.take(webhook, 10)).parked).toMatchObject([{ fresh: false, tries: 0, attempts: [ATTEMPT] }]);
    expect((await store.claim(100, 'x', 1000)).map(({ webhookId }) => webhookId)).toContain(webhook);
  });

  it('makes a pending one due at once', async () => {
    const place = await park(LONG);
    await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(await due()).toEqual([place.seq]);
  });

  it('makes one that succeeded due again, as the same message, as long as its event is there', async () => {
    const place = deliver();
    events = [{ kind: 'event', place, emitterId: 'dc_1', stream: 'mine', emitId: 'same', json: Buffer.from('{"b":2}'), hops: 0 }];
    const retried = await service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) });
    expect(retried).toMatchObject({ id: idOf(place), status: 'pending', attempts: [SUCCESS] });
    const [parked] = (await store.take(webhook, 10)).parked;
    expect(parked).toMatchObject({ fresh: false, tries: 0, delivery: { emitId: 'same', json: Buffer.from('{"b":2}') } });
    expect(messageId(parked!.delivery)).toBe(messageId({ emitterId: 'dc_1', stream: 'mine', emitId: 'same', webhookId: webhook }));
    await store.settle(webhook, [{ delivery: parked!.delivery, delivered: true, attempts: [SUCCESS, SUCCESS] }]);
    delivered.add(parked!.delivery, [SUCCESS, SUCCESS]);
    expect((await list()).data).toMatchObject([{ id: idOf(place), status: 'succeeded', attempts: [SUCCESS, SUCCESS] }]);
  });

  it('is refused for one whose event is gone, or that never was', async () => {
    const place = deliver();
    events = [];
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf(place) })))?.code).toBe('conflict');
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: 'del_1' })))?.code).toBe('not_found');
    expect((await errorOf(service.retry({ owner_id: owner, webhook_id: webhook, id: idOf({ ms: 1, seq: 1 }) })))?.code).toBe('not_found');
  });
});

describe('recovering', () => {
  it('makes all due that has failed since, and nothing else', async () => {
    const places = [await park(null), await park(null)];
    await park(LONG);
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: Date.now() + 60_000 })).toEqual({ count: 0 });
    expect(await due()).toEqual([]);
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: Date.now() - 60_000 })).toEqual({ count: 2 });
    expect(await due()).toEqual(places.map((place) => place.seq));
    expect(await service.recover({ owner_id: owner, webhook_id: webhook, since_ms: 0 })).toEqual({ count: 0 });
  });
});

describe('sweeping', () => {
  const sweeper = () => new ParkedDeliveriesRepository(routing.database);

  it('gives up what has waited too long, and shows an example of each webhook', async () => {
    const other = await routing.webhook(owner);
    const places = [await park(LONG), await park(LONG)];
    await park(LONG, delivery({ webhookId: other }));
    const { count, examples } = await sweeper().giveUpExpired(-1000);
    expect(count).toBeGreaterThanOrEqual(3);
    expect(examples.filter(({ webhookId }) => webhookId === webhook).map(({ place }) => place)).toEqual([places[1]]);
    expect((await list()).data.map(({ status }) => status)).toEqual(['failed', 'failed']);
    expect(await sweeper().giveUpExpired(-1000)).toEqual({ count: 0, examples: [] });
  });

  it('deletes deliveries that were given up long ago', async () => {
    await park(null);
    const pending = await park(LONG);
    await sweeper().deleteGivenUp(LONG);
    expect((await list()).data).toHaveLength(2);
    expect(await sweeper().deleteGivenUp(-1000)).toBeGreaterThanOrEqual(1);
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
    const found = await new Targets(store, routing.box).load(webhook);
    if (!found) throw new Error('no target');
    return found;
  };

  it('gets an event on $errors about a delivery that was given up, once per webhook and hour', async () => {
    const notices = new OwnerAlerts(log, routing.database, routing.webhooks);
    await outbox();
    const each = delivery({ emitterId: 'p_1', stream: 'x' });
    await notices.gaveUp(await target(), each, ATTEMPT);
    await notices.gaveUp(await target(), delivery(), ATTEMPT);
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

  it('gets no event about the failed delivery of such an event', async () => {
    const notices = new OwnerAlerts(log, routing.database, routing.webhooks);
    await outbox();
    await notices.gaveUp(
      await target(),
      delivery({ stream: '$errors', json: Buffer.from('{"error":{"code":"DeliveryFailed"}}') }),
      undefined,
    );
    expect(await outbox()).toEqual([]);
    await notices.gaveUp(await target(), delivery({ stream: '$errors', json: Buffer.from('null') }), undefined);
    expect(await outbox()).toHaveLength(1);
  });

  it('gets a fact about a webhook that was disabled', async () => {
    const notices = new OwnerAlerts(log, routing.database, routing.webhooks);
    await outbox();
    await notices.disabled(await target(), 'failing');
    expect(await outbox()).toEqual([
      {
        topic: 'routing.error.raised',
        key: owner,
        value: expect.objectContaining({ owner_id: owner, subject_id: webhook, code: 'WebhookDisabled' }),
      },
    ]);
  });
});

describe('parking while the backlog ends', () => {
  it('loses nothing, and leaves nothing behind', async () => {
    let [parked, direct, settled] = [0, 0, 0];
    const end = Date.now() + 2000;
    const arrive = async () => {
      while (Date.now() < end) {
        const mode = await store.parkFresh(webhook, [delivery()]);
        if (mode === 'spilled') parked += 1;
        else if (mode === 'direct') direct += 1;
      }
    };
    const spill = async () => {
      while (Date.now() < end) {
        await store.spill(webhook, null);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const drain = async () => {
      for (;;) {
        const [claim] = (await store.claim(1000, `lease ${(seq += 1)}`, LONG)).filter(({ webhookId }) => webhookId === webhook);
        if (!claim) {
          if (Date.now() > end + 200) return;
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
    expect(parked).toBeGreaterThan(50);
    expect(direct).toBeGreaterThan(5);
    expect((await store.findTargets([webhook]))[0]?.mode).toBe('direct');
    expect((await routing.database.query('SELECT FROM backlog WHERE webhook_id = $1', [webhook])).rowCount).toBe(0);
  });
});
