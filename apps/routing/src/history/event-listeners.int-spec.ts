import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { newId, type UserId } from '#contracts';
import { type FreshDatabase, freshDatabase, pagesRead } from '#testing';
import { ReplayRow, ReplaysRepository } from '../replays/replays.repository.js';
import { schema } from '../database/schema.js';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { EventListenersRepository } from './event-listeners.repository.js';

async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

let routing: RoutingFixture;
let repository: EventListenersRepository;
const owner: UserId = newId('user');
beforeAll(async () => {
  routing = await RoutingFixture.open();
  repository = new EventListenersRepository(routing.database);
});
afterAll(() => routing?.close());

it('finds the listeners of a stream with their oldest subscription, and when they were switched', async () => {
  const [emitter, source, webhook] = [await routing.source(owner), await routing.source(owner), await routing.webhook(owner)];
  const subscribe = (emitter_id: string, listener_id: string) => routing.service.create({ owner_id: owner, emitter_id, listener_id });
  const first = await subscribe('dc_*', source);
  await subscribe(emitter, source);
  const second = await subscribe(emitter, webhook);
  await routing.directory.learn(routing.state(owner, source, { active: false, version: 2, created_at_ms: 0 }));
  const found = await repository.subscribers(owner, emitter, '');
  const of = (id: string) => found.filter(({ listener_id }) => listener_id === id);
  expect(of(source)).toEqual([
    { listener_id: source, subscription_id: first.id, active: false, activated_at_ms: 0, deactivated_at_ms: expect.any(Number) },
  ]);
  expect(Math.abs(of(source)[0]!.deactivated_at_ms - Date.now())).toBeLessThan(10_000);
  const { created_at } = (await routing.webhooks.find(owner, webhook))!;
  const changed = of(webhook)[0]!.activated_at_ms;
  expect(Math.abs(changed - created_at.getTime())).toBeLessThanOrEqual(1);
  expect(of(webhook)).toEqual([
    { listener_id: webhook, subscription_id: second.id, active: true, activated_at_ms: changed, deactivated_at_ms: changed },
  ]);
});

it('a webhook has the times at which it was last switched on and off, also by the suspension of its account', async () => {
  const account: UserId = newId('user');
  const [emitter, webhook] = [await routing.source(account), await routing.webhook(account)];
  await routing.service.create({ owner_id: account, emitter_id: emitter, listener_id: webhook });
  const update = (change: object) => routing.webhooks.update(account, webhook, change);
  const target = async () => (await routing.webhooks.findTargets([webhook]))[0]!;
  const disable = async () => {
    const { id, url } = await target();
    await routing.database.transaction((transaction) => routing.webhooks.disable(transaction, { id, url }));
  };
  const suspend = (suspended: boolean) => routing.webhooks.suspend(account, suspended);
  let before = (await repository.subscribers(account, emitter, ''))[0]!;
  expect(before.activated_at_ms).toBe(before.deactivated_at_ms);
  /** Which times a step has changed. */
  const changedBy = async (step: () => Promise<unknown>) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await step();
    const after = (await repository.subscribers(account, emitter, ''))[0]!;
    const changed = [after.activated_at_ms > before.activated_at_ms && 'on', after.deactivated_at_ms > before.deactivated_at_ms && 'off'];
    before = after;
    return changed.filter(Boolean).join();
  };
  for (const [step, changed] of [
    [() => update({ name: 'renamed' }), ''],
    [() => update({ active: true }), ''],
    [() => update({ active: false }), 'off'],
    [() => update({ active: false, name: 'again' }), ''],
    [() => update({ active: true }), 'on'],
    [() => disable(), 'off'],
    [() => update({ active: true }), 'on'],
    [() => suspend(true), 'off'],
    [() => update({ active: false }), ''],
    [() => suspend(false), ''],
    [() => suspend(true), ''],
    [() => update({ active: true }), ''],
    [() => suspend(false), 'on'],
  ] as const)
    expect([String(step), await changedBy(step)]).toEqual([String(step), changed]);
});

it('finds whether an event is postponed', async () => {
  await routing.database.query(
    "INSERT INTO postponed_event (ms, seq, owner_id, emitter_id, stream, headers, value) VALUES (7, 8, $1, 'dc_1', '', '{}', '')",
    [owner],
  );
  await routing.database.query(
    "INSERT INTO unknown_event (ms, seq, emitter_id, stream, headers, value) VALUES (9, 8, 'dc_1', '', '{}', '')",
  );
  expect(await Promise.all([7, 8, 9].map((ms) => repository.isPostponed({ ms, seq: 8 })))).toEqual([true, false, true]);
});

describe('the replays of an emitter', () => {
  it('are those to sources and workflows that exist, newest first', async () => {
    const replays = new ReplaysRepository(routing.database, routing.database.rows(ReplayRow));
    const [emitter, source, workflow] = [await routing.source(owner), await routing.source(owner), await routing.workflow(owner)];
    const deleted = await routing.source(owner, { deleted: true });
    const part = { owner_id: owner, emitter_id: emitter, stream: '', from_id: '1-1', to_id: '2-2' };
    const added = [];
    for (const listener_id of [source, workflow, deleted, newId('webhook')]) {
      added.push({ ...part, id: newId('replay'), listener_id, events: 1 });
      await replays.add(added.at(-1)!);
    }
    await replays.add({ ...part, id: newId('replay'), emitter_id: source, listener_id: source, events: 1 });
    const found = await repository.replays(owner, emitter);
    expect(found.map(({ id }) => id)).toEqual([added[1]!.id, added[0]!.id]);
    expect(found[0]).toEqual({ id: added[1]!.id, listener_id: workflow, stream: '', from_id: '1-1', to_id: '2-2', offsets: {} });
  });
});

it('finds the last delivery of an event to each webhook, and reads no other', async () => {
  const [emitter, webhooks] = [await routing.source(owner), [await routing.webhook(owner), await routing.webhook(owner)]];
  const attempts = (body: string) => [{ ts: 5, status_code: 200, duration_ms: 1, error: null, response_body: body }];
  const [misleading, large] = ['},{"ms":7,"seq":7,"emitter_id":"x"}]', 'x'.repeat(10_000)];
  const add = (webhook: string, ...entries: [seq: number, body: string][]) =>
    routing.database.query('INSERT INTO delivered (webhook_id, count, deliveries) VALUES ($1, $2, $3)', [
      ...[webhook, entries.length],
      Buffer.from(JSON.stringify(entries.map(([seq, body]) => ({ ms: 7, seq, emitter_id: emitter, attempts: attempts(body) })))),
    ]);
  await add(webhooks[0]!, [6, large], [7, 'first'], [8, large], [7, misleading], [9, large]);
  await add(webhooks[1]!, [7, 'a'], [6, large]);
  await add(webhooks[1]!, [6, large], [7, 'b']);
  await add(webhooks[1]!, [6, large]);
  const query = jest.spyOn(routing.database, 'query');
  try {
    const found = await allOf(repository.deliveries(owner, emitter, { ms: 7, seq: 7 }));
    const of = (id: string) => found.filter(({ webhook_id }) => webhook_id === id).map((delivery) => delivery.attempts);
    expect([of(webhooks[0]!), of(webhooks[1]!)]).toEqual([[attempts(misleading)], [attempts('b')]]);
    await repository.beyond(owner, emitter, { ms: 7, seq: 7 }, webhooks);
    const read = await Promise.all(query.mock.results.map(({ value }) => value as Promise<{ rows: object[] }>));
    expect(JSON.stringify(read.map(({ rows }) => rows)).length).toBeLessThan(large.length);
  } finally {
    query.mockRestore();
  }
});

describe('the webhooks to which later events of the emitter were delivered lately', () => {
  it.each([
    ['are found', ', 5, 9'],
    ['are found in rows of earlier versions, which do not have the times of their events', ', null, null'],
  ])('%s', async (_, times) => {
    const [emitter, other] = [await routing.source(owner), await routing.source(owner)];
    const [beyond, before, foreign] = [await routing.webhook(owner), await routing.webhook(owner), await routing.webhook(owner)];
    const delivered = async (webhook: string, ...places: [emitter: string, seq: number][]) => {
      const entries = places.map(([emitter_id, seq]) => ({ ms: 5, seq, emitter_id, attempts: [] }));
      await routing.database.query(`INSERT INTO delivered (webhook_id, count, deliveries, first_ms, last_ms) VALUES ($1, $2, $3${times})`, [
        webhook,
        entries.length,
        Buffer.from(JSON.stringify(entries)),
      ]);
    };
    await delivered(beyond, [emitter, 1], [emitter, 3], [other, 9]);
    await delivered(before, [emitter, 1], [emitter, 2], [other, 9]);
    await delivered(foreign, [other, 9]);
    const webhooks = [beyond, before, foreign];
    expect(await repository.beyond(owner, emitter, { ms: 5, seq: 2 }, webhooks)).toEqual(new Set([beyond]));
    expect(await repository.beyond(owner, emitter, { ms: 5, seq: 2 }, [before, foreign])).toEqual(new Set());
    expect(await repository.beyond(newId('user'), emitter, { ms: 5, seq: 2 }, webhooks)).toEqual(new Set());
  });
});

describe('an account with very many webhooks', () => {
  const EVENT = { ms: 7, seq: 7 };
  let fresh: FreshDatabase;
  /** Webhooks, of which a quarter has a parked delivery of the event and twenty rows of delivered ones, and replays. */
  const addWebhooks = async (ownerId: UserId, count: number) => {
    const generated = `FROM generate_series(1, $2::int) AS n CROSS JOIN LATERAL (SELECT 'wh_' || $1 || n AS id, 'dc_' || $1 || n AS emitter) AS of_webhook`;
    const statements = [
      `INSERT INTO webhook (id, owner_id, url, secret) SELECT id, $1, 'https://example.com/', '' ${generated}`,
      `INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms) SELECT emitter, $1, 'source', true, false, 1, 1 ${generated}`,
      `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, body, fresh, attempts, tries, due_at)
       SELECT id, 7, 7, 'dc_' || $1, '', '', '', false, '[]', 1, now() ${generated} WHERE n % 4 = 0`,
      `INSERT INTO delivered (webhook_id, count, deliveries, first_ms, last_ms)
       SELECT id, 1, convert_to('[{"ms":' || ms || ',"seq":7,"emitter_id":"dc_' || $1 || '","attempts":[]}]', 'UTF8'), ms, ms
       ${generated} CROSS JOIN generate_series(1, 20) AS ms WHERE n % 4 = 0`,
      `INSERT INTO replay (id, owner_id, emitter_id, stream, listener_id, from_id, to_id, events)
       SELECT 'rpl_' || id, $1, 'dc_' || $1, '', emitter, '1-1', '9-9', 1 ${generated}`,
    ];
    for (const statement of statements) await fresh.database.query(statement, [ownerId, count]);
  };
  beforeAll(async () => {
    fresh = await freshDatabase(schema, { max: 1 });
    await addWebhooks('u_large', 2000);
    await addWebhooks('u_small', 4);
    // stored outside their rows
    await fresh.database.query(
      `INSERT INTO delivered (webhook_id, count, deliveries, first_ms, last_ms)
       SELECT 'wh_u_small1', 1, convert_to(string_agg(md5(ms || ' ' || n), ''), 'UTF8'), ms, ms FROM generate_series(101, 150) AS ms, generate_series(1, 300) AS n GROUP BY ms`,
    );
    await fresh.database.query('ANALYZE');
  });
  afterAll(() => fresh?.drop());

  it('has the deliveries of an event at all of them', async () => {
    const deliveries = await allOf(new EventListenersRepository(fresh.database).deliveries('u_large', 'dc_u_large', EVENT));
    expect(new Set(deliveries.map(({ webhook_id, status }) => `${webhook_id} ${status}`)).size).toBe(500);
  });

  it.each<[string, number, (history: EventListenersRepository) => Promise<Iterable<unknown>>]>([
    ['deliveries of an event', 1, (history) => allOf(history.deliveries('u_small', 'dc_u_small', EVENT))],
    ['deliveries after an event', 1, (history) => history.beyond('u_small', 'dc_u_small', EVENT, ['wh_u_small3', 'wh_u_small4'])],
    ['replays', 4, (history) => history.replays('u_small', 'dc_u_small')],
  ])('is not read for the %s of another account', async (_, count, find) => {
    let found: unknown[] = [];
    const pages = await pagesRead(fresh.database, async () => {
      found = [...(await find(new EventListenersRepository(fresh.database)))];
    });
    expect(found).toHaveLength(count);
    expect(pages).toBeLessThan(100);
  });
});
