import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import { createLog } from '#observability';
import { RoutingFixture } from '../../routing-fixture-for-tests.js';
import { Attempts } from '../attempt/attempts.js';
import { type PostResult, Poster } from '../attempt/http-poster.js';
import { RunningClock } from '../attempt/running-clock.js';
import { ReceiverStates } from '../receivers/receiver-states.js';
import { Targets } from '../receivers/targets.js';
import { UNSHARED } from '../store/delivery-store-in-memory-for-tests.js';
import type { Claim, DeliveryStore } from '../store/delivery-store.js';
import { postgresDeliveryStore } from '../store/postgres-delivery-store-for-tests.js';
import { Drainer } from './drainer.js';

const OWNER: UserId = 'u_1';
const SLOW: EmitterId = 'dc_1';
const silent = createLog('drainer', 'silent');
const OK: PostResult = { kind: 'response', status: 200, body: '' };

/** A receiver that does not respond to the first event, until it is `released`. */
class SlowPoster extends Poster {
  readonly posted: string[] = [];
  private readonly hanging = Promise.withResolvers<PostResult>();

  post = async (...[, headers]: unknown[]) => {
    const eventId = (headers as Record<string, string>)['ce-sluiceevent']!;
    this.posted.push(eventId);
    return eventId === '1-1' ? this.hanging.promise : OK;
  };
  close = async () => {};

  release(): void {
    this.hanging.resolve(OK);
  }
}

let routing: RoutingFixture;
let store: DeliveryStore;
beforeAll(async () => {
  routing = await RoutingFixture.open();
  store = postgresDeliveryStore(routing.database, routing.webhooks);
});
afterAll(() => routing?.close());

/** A webhook with this many fresh deliveries of a slow emitter, whose event is `1-1`. */
async function backlog(deliveries: number): Promise<WebhookId> {
  const id = await routing.webhook(OWNER);
  await store.spill(id);
  await routing.database.query(
    `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at)
     SELECT $1, 1, n, $2, '', 'e', '1', true, '[]', 0, now() FROM generate_series(1, $3::integer) AS n`,
    [id, SLOW, deliveries],
  );
  return id;
}

const park = (webhookId: WebhookId, seq: number) =>
  store.parkFresh(webhookId, [{ webhookId, place: { ms: 2, seq }, emitterId: 'dc_2', stream: '', emitId: 'e', json: Buffer.from('1') }]);

/** Drains these backlogs while `work` runs, and until they are empty or deleted. */
async function whileDraining(ids: WebhookId[], work: (poster: SlowPoster) => Promise<void>): Promise<void> {
  const poster = new SlowPoster();
  const none = { countEnded() {}, gaveUp() {}, disabled: () => {}, add() {} } as never;
  const middle = () => 0.5;
  const attempts = new Attempts(silent, routing.config, poster, middle, none, new RunningClock());
  const targets = new Targets(silent, store, routing.box);
  const drainer = new Drainer(silent, routing.config, store, targets, new ReceiverStates(), attempts, none, none, middle);
  const claims = await store.claim(1000, 'lease', 60_000, UNSHARED);
  const drained = claims.filter(({ webhookId }) => ids.includes(webhookId)).map((claim: Claim) => drainer.drain(claim));
  try {
    await work(poster);
  } finally {
    await routing.database.query('DELETE FROM webhook');
    await routing.database.query('DELETE FROM parked_delivery');
    poster.release();
    await Promise.all(drained);
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it('needs few statements for many backlogs that wait for slow attempts, and finds what is parked meanwhile', async () => {
  const ids: WebhookId[] = [];
  for (let n = 0; n < 60; n++) ids.push(await backlog(100));
  const parkedAt = ids[30]!;
  await whileDraining(ids, async (poster) => {
    while (poster.posted.length < ids.length) await pause(50);
    const statementsOfTwoSeconds = async () => {
      const query = jest.spyOn(routing.database, 'query');
      await pause(2000);
      const names = query.mock.calls.map(([statement]) => (typeof statement === 'string' ? statement : statement.name));
      query.mockRestore();
      // each lease is renewed every ten seconds
      return names.filter((name) => name !== 'backlog-renew').length;
    };
    // soon, when all of them wait
    while ((await statementsOfTwoSeconds()) >= 10);
    await park(parkedAt, 1);
    while (!poster.posted.includes('2-1')) await pause(50);
  });
});

it('attempts the deliveries of another emitter, in order, behind many of one whose attempt is slow', async () => {
  const id = await backlog(5000);
  for (let seq = 1; seq <= 300; seq++) await park(id, seq);
  const ofOther = (poster: SlowPoster) => poster.posted.filter((eventId) => eventId.startsWith('2-'));
  await whileDraining([id], async (poster) => {
    while (ofOther(poster).length < 300) await pause(50);
    expect(ofOther(poster)).toEqual(Array.from({ length: 300 }, (_, n) => `2-${n + 1}`));
    expect(poster.posted).toHaveLength(301);
  });
}, 30_000);
