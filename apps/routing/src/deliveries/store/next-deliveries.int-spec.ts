import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { EmitterId, WebhookId } from '#contracts';
import { pagesRead } from '#testing';
import { RoutingFixture } from '../../routing-fixture-for-tests.js';
import { NextDeliveriesRepository } from './next-deliveries.repository.js';

const FIRST = { ms: 1, seq: 1 };

let routing: RoutingFixture;
let next: NextDeliveriesRepository;

/** Adds fresh deliveries to each of the webhooks `wh_<name>1`, `wh_<name>2` and so on, from this place on. */
const add = (
  name: string,
  { webhooks = 1, from = 1, count, emitter }: { webhooks?: number; from?: number; count: number; emitter: string },
) =>
  routing.database.query(
    `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at)
     SELECT 'wh_' || $1::text || w, 1, n, ${emitter}, '', 'e', '1', true, '[]', 0, now()
     FROM generate_series(1, $2::integer) AS w, generate_series($3::integer, $3::integer + $4::integer - 1) AS n`,
    [name, webhooks, from, count],
  );

beforeAll(async () => {
  routing = await RoutingFixture.open();
  next = new NextDeliveriesRepository(routing.database);
  await add('inactive', { webhooks: 10_000, count: 2, emitter: "'dc_slow'" });
  await add('large', { count: 50_000, emitter: "'dc_slow'" });
  await add('large', { from: 50_001, count: 10, emitter: "'dc_other' || n" });
  await add('usual', { count: 300, emitter: "'dc_' || n % 3" });
}, 60_000);
afterAll(() => routing?.close());

const take = async (webhookId: WebhookId, emitters: EmitterId[]) =>
  (await next.take(webhookId, 10, { except: { places: [FIRST], emitters } })).parked;
const find = async (webhookIds: WebhookId[], emitters: EmitterId[]) => [
  ...(await next.findTakeable(webhookIds.map((webhookId) => ({ webhookId, except: { places: [FIRST], emitters } })))),
];
const inactive = Array.from({ length: 100 }, (_, n): WebhookId => `wh_inactive${n + 1}`);

describe.each([['before'], ['after']])('the pages that are read %s the table is analyzed', (when) => {
  beforeAll(async () => {
    if (when === 'after') await routing.database.query('ANALYZE parked_delivery');
  });

  it.each<[string, { found: number; most: number; work: () => Promise<unknown[]> }]>([
    ['taken from a backlog', { found: 10, most: 80, work: () => take('wh_usual1', []) }],
    ['taken from a backlog with an emitter that is held up', { found: 10, most: 80, work: () => take('wh_usual1', ['dc_1']) }],
    ['taken from a large backlog', { found: 10, most: 80, work: () => take('wh_large1', []) }],
    ['taken from behind those of an emitter that is held up', { found: 10, most: 300, work: () => take('wh_large1', ['dc_slow']) }],
    ['found for a large backlog', { found: 1, most: 30, work: () => find(['wh_large1'], ['dc_slow']) }],
    ['found for many backlogs, of which none has any', { found: 0, most: 1500, work: () => find(inactive, ['dc_slow']) }],
    ['found for many backlogs, each of which has some', { found: 100, most: 1500, work: () => find(inactive, []) }],
  ])('are few when deliveries are %s', async (_, { found, most, work }) => {
    let rows: unknown[] = [];
    const pages = await pagesRead(routing.database, async () => (rows = await work()));
    expect(rows).toHaveLength(found);
    expect(pages).toBeLessThan(most);
  });
});
