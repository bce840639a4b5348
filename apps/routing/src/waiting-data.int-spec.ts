import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId, type SourceId, type UserId, type WebhookId } from '#contracts';
import type { EmittedEvent } from '#events';
import type { LogRecord } from '#messaging';
import { WaitingEntriesRepository } from '#waiting-data';
import { type Attempt, type Delivery } from './deliveries/delivery.js';
import type { PostgresDeliveryStore } from './deliveries/store/postgres-delivery-store.js';
import { ParkedDeliveriesRepository } from './deliveries/store/parked-deliveries.repository.js';
import { postgresDeliveryStore } from './deliveries/store/postgres-delivery-store-for-tests.js';
import { PostponedEventsRepository } from './routes/postponed-events.repository.js';
import { RoutingFixture } from './routing-fixture-for-tests.js';
import { WAITING_DATA } from './waiting-data.js';

const ATTEMPT: Attempt = { ts: 5, status_code: 500, duration_ms: 2, error: null, response_body: 'no' };
const LONG = 3_600_000;
/** The size of a row without its data; a parked delivery has the list of its attempts, which is empty here. */
const ROW = 512;
const PARKED = ROW + '[]'.length;
/** Larger than what PostgreSQL compresses and stores elsewhere. */
const LARGE = 100_000;

let routing: RoutingFixture;
let entries: WaitingEntriesRepository;
let store: PostgresDeliveryStore;
let parked: ParkedDeliveriesRepository;
let postponed: PostponedEventsRepository;
let owner: UserId;
let webhook: WebhookId;
let source: SourceId;
let seq = 0;

beforeAll(async () => {
  routing = await RoutingFixture.open();
  entries = new WaitingEntriesRepository(routing.database);
  store = postgresDeliveryStore(routing.database, routing.webhooks);
  parked = new ParkedDeliveriesRepository(routing.database, routing.backlogs);
  postponed = new PostponedEventsRepository(routing.database);
});
afterAll(() => routing?.close());
beforeEach(async () => {
  owner = newId('user');
  webhook = await routing.webhook(owner);
  source = newId('source');
});

const delivery = (bytes: number, change: Partial<Delivery> = {}): Delivery => {
  seq += 1;
  const json = Buffer.from(JSON.stringify('x'.repeat(bytes - 2)));
  return { webhookId: webhook, place: { ms: Date.now(), seq }, emitterId: source, stream: '', emitId: `e${seq}`, json, ...change };
};
const fail = async (each: Delivery, pauseMs: number | null = LONG): Promise<Delivery> => {
  await store.parkFailed({ delivery: each, delivered: false, attempts: [], tries: 1, pauseMs });
  return each;
};
const has = async (account = owner, table = 'parked_delivery'): Promise<[rows: number, bytes: number]> => {
  const counts = (await entries.counts(WAITING_DATA.accountOf!)).filter((count) => count.account === account && count.table === table);
  expect(counts.length).toBeLessThanOrEqual(1);
  return [counts[0]?.rows ?? 0, counts[0]?.bytes ?? 0];
};
const entriesOf = async (holder: string) =>
  (await routing.database.query('SELECT FROM waiting_entry WHERE holder = $1', [holder])).rowCount;

describe('the parked deliveries of an account', () => {
  it.each([20, 3000, LARGE])('are counted with their bodies of %d bytes, until they are delivered', async (bytes) => {
    const deliveries = [await fail(delivery(bytes)), await fail(delivery(bytes))];
    expect(await has()).toEqual([2, 2 * (PARKED + bytes)]);
    await store.settle(webhook, [{ delivery: deliveries[0]!, delivered: true, attempts: [ATTEMPT] }]);
    expect(await has()).toEqual([1, PARKED + bytes]);
    await store.settle(webhook, [{ delivery: deliveries[1]!, delivered: true, attempts: [ATTEMPT] }]);
    expect(await has()).toEqual([0, 0]);
  });

  it('are counted with the attributes of their producer', async () => {
    const context = { attributes: { subject: 's'.repeat(3000) } };
    const each = await fail(delivery(20, { context }));
    expect(await has()).toEqual([1, PARKED + 20 + JSON.stringify(context).length]);
    await store.settle(webhook, [{ delivery: each, delivered: true, attempts: [ATTEMPT] }]);
    expect(await has()).toEqual([0, 0]);
  });

  it('are counted once, however often they are parked', async () => {
    await store.spill(webhook);
    const deliveries = [delivery(100), delivery(200)];
    await store.parkFresh(webhook, deliveries);
    await store.parkFresh(webhook, deliveries);
    await fail(deliveries[0]!);
    expect(await has()).toEqual([2, 2 * PARKED + 300]);
  });

  it('deliveries of several webhooks are added up', async () => {
    await fail(delivery(100));
    await fail(delivery(200, { webhookId: await routing.webhook(owner) }));
    await fail(delivery(400, { webhookId: await routing.webhook(newId('user')) }));
    expect(await has()).toEqual([2, 2 * PARKED + 300]);
  });

  it('are counted with their attempts, also after they were given up, until they are deleted', async () => {
    const each = await fail(delivery(LARGE));
    const attempts = [{ ...ATTEMPT, response_body: 'x'.repeat(1000) }];
    await routing.database.query("UPDATE backlog SET lease_id = 'own' WHERE webhook_id = $1", [webhook]);
    await store.settle(webhook, [{ delivery: each, delivered: false, attempts, tries: 2, pauseMs: LONG }], { leaseId: 'own' });
    const [rows, bytes] = await has();
    expect([rows, Math.floor((bytes - ROW - LARGE) / 1000)]).toEqual([1, 1]);
    await store.disable((await store.findTargets([webhook]))[0]!, []);
    await store.giveUp(webhook);
    expect(await has()).toEqual([rows, bytes]);
    while ((await parked.deleteGivenUp(-1000)) > 0);
    expect(await has()).toEqual([0, 0]);
  });

  it('deliveries of a deleted event keep only their rows', async () => {
    await fail(delivery(LARGE));
    await parked.withdraw([{ emitterId: source, place: { ms: Date.now() + LONG, seq: 0 }, start: null, end: null, stream: null } as never]);
    const [rows, bytes] = await has();
    expect([rows, bytes < ROW + 200]).toEqual([1, true]);
  });

  it('go with their webhook', async () => {
    for (let n = 0; n < 3; n++) await fail(delivery(3000));
    await routing.webhooks.delete(owner, webhook);
    expect(await has()).toEqual([0, 0]);
    expect(await has(webhook as never)).toEqual([0, 0]);
    expect(await entriesOf(webhook)).toBe(0);
  });

  it('count until they are deleted in batches, if their webhook is deleted', async () => {
    const [other, theirs] = [await routing.webhook(owner), await routing.webhook(newId('user'))];
    for (const id of [webhook, other, theirs]) await store.spill(id);
    await store.parkFresh(
      webhook,
      Array.from({ length: 2500 }, () => delivery(20)),
    );
    for (const webhookId of [other, theirs]) await store.parkFresh(webhookId, [delivery(20, { webhookId })]);
    const rows = async () => (await has())[0];
    await routing.webhooks.delete(owner, webhook);
    expect(await rows()).toBe(1501);
    expect([await parked.deleteOfDeletedWebhooks(), await rows()]).toEqual([true, 501]);
    expect([await parked.deleteOfDeletedWebhooks(), await rows()]).toEqual([true, 1]);
    expect([await parked.deleteOfDeletedWebhooks(), await rows()]).toEqual([false, 1]);
    expect(await parked.count(owner, other, [])).toBe(1);
    expect((await routing.database.query('SELECT FROM parked_delivery WHERE webhook_id = $1', [theirs])).rowCount).toBe(1);
  });

  it('become one entry, which later changes are added to', async () => {
    for (let n = 0; n < 5; n++) await fail(delivery(100));
    expect(await entriesOf(webhook)).toBe(5);
    expect(await has()).toEqual([5, 5 * (PARKED + 100)]);
    expect(await entriesOf(webhook)).toBe(1);
    await fail(delivery(100));
    expect(await has()).toEqual([6, 6 * (PARKED + 100)]);
  });

  it('are right while several replicas count and others park and deliver', async () => {
    const end = Date.now() + 1500;
    const work = async () => {
      while (Date.now() < end) {
        const [kept, done] = [await fail(delivery(50)), await fail(delivery(3000))];
        await store.settle(webhook, [{ delivery: done, delivered: true, attempts: [ATTEMPT] }]);
        expect(kept.json).toHaveLength(50);
      }
    };
    const count = async () => {
      while (Date.now() < end) await entries.counts(WAITING_DATA.accountOf!);
    };
    await Promise.all([work(), work(), work(), count(), count()]);
    const { rows } = await routing.database.query<{ rows: number; bytes: number }>(
      `SELECT count(*)::float8 AS rows, sum(${PARKED} + octet_length(body))::float8 AS bytes FROM parked_delivery WHERE webhook_id = $1`,
      [webhook],
    );
    expect(rows[0]!.rows).toBeGreaterThan(10);
    expect(await has()).toEqual([rows[0]!.rows, rows[0]!.bytes]);
  });

  it('are right after a process was killed in the middle of a transaction', async () => {
    await fail(delivery(100));
    const client = await routing.database.connect();
    client.on('error', () => {});
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await client.query('BEGIN');
    await client.query('DELETE FROM parked_delivery WHERE webhook_id = $1', [webhook]);
    await routing.database.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]!.pid]);
    client.release(true);
    expect(await has()).toEqual([1, PARKED + 100]);
  });
});

describe('the postponed events of an account', () => {
  const event = (bytes: number): { ownerId: UserId; event: EmittedEvent; record: LogRecord } => {
    seq += 1;
    const place = { ms: Date.now(), seq };
    return {
      ownerId: owner,
      event: { kind: 'event', place, emitterId: source, stream: '', emitId: `e${seq}`, json: Buffer.from('1'), hops: 0 },
      record: { value: Buffer.alloc(bytes, '1'), headerNames: () => ['a'], header: () => 'b' } as unknown as LogRecord,
    };
  };
  const HEADERS = JSON.stringify({ a: 'b' }).length;

  it('are counted until they are removed', async () => {
    const events = [event(10), event(LARGE)];
    await postponed.add(events);
    await postponed.add(events);
    expect(await has(owner, 'postponed_event')).toEqual([2, 2 * (ROW + HEADERS) + 10 + LARGE]);
    await postponed.remove([events[1]!.event.place]);
    expect(await has(owner, 'postponed_event')).toEqual([1, ROW + HEADERS + 10]);
    await postponed.remove([events[0]!.event.place]);
    expect(await has(owner, 'postponed_event')).toEqual([0, 0]);
    expect(await entriesOf(owner)).toBe(0);
  });
});
