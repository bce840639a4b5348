import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type EmitterId, newId, type SourceId, type UserId, type WebhookId, type WorkflowId } from '#contracts';
import type { EmittedEvent } from '#events';
import { createLog } from '#observability';
import { pagesRead } from '#testing';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { MatchRepository } from './match.repository.js';

let routing: RoutingFixture;
let matching: MatchRepository;
let owner: UserId;
beforeAll(async () => {
  routing = await RoutingFixture.open();
  matching = new MatchRepository(routing.database, routing.directory, createLog('test', 'silent'));
});
afterAll(() => routing.close());
beforeEach(() => {
  owner = newId('user');
});

/** @param ms by default, it is emitted after all that the test has done */
const event = (emitterId: EmitterId, stream = '', ms = Date.now() + 60_000): EmittedEvent => ({
  kind: 'event',
  place: { ms, seq: 1 },
  emitterId,
  stream,
  emitId: 'e',
  json: Buffer.from('1'),
  hops: 0,
});
const subscribe = (emitter_id: string, listener_id: string, event_name = '') =>
  routing.service.create({ owner_id: owner, emitter_id, listener_id, event_name });
const listeners = async (emitterId: EmitterId, stream = '') =>
  (await matching.match([event(emitterId, stream)])).matches[0]?.listeners.map(({ id }) => id);

describe('an event is matched with', () => {
  it('listeners may subscribe to its emitter, to all of its kind, or to all of the account', async () => {
    const [source, workflow] = [await routing.source(owner), await routing.workflow(owner)];
    const [exact, sources, workflows, all] = [
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
    ];
    await subscribe(source, exact);
    await subscribe('dc_*', sources);
    await subscribe('p_*', workflows);
    await subscribe(owner, all);
    expect(await listeners(source)).toEqual([exact, sources, all]);
    expect(await listeners(workflow)).toEqual([workflows, all]);
    expect(await listeners(await routing.source(owner))).toEqual([sources, all]);
  });

  it('a listener once, however many of its subscriptions match', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    for (const emitter of [source, 'dc_*', owner]) for (const name of ['', 'default']) await subscribe(emitter, webhook, name);
    expect(await listeners(source)).toEqual([webhook]);
  });

  it('listeners of its stream get it: the default one has two names', async () => {
    const [source, unnamed, named, errors, orders] = [
      await routing.source(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
    ];
    await subscribe(source, unnamed);
    await subscribe(source, named, 'default');
    await subscribe(source, errors, '$errors');
    await subscribe(source, orders, 'orders');
    expect(await listeners(source)).toEqual([unnamed, named]);
    expect(await listeners(source, '$errors')).toEqual([errors]);
    expect(await listeners(source, 'orders')).toEqual([orders]);
    expect(await listeners(source, '$logs')).toEqual([]);
  });

  it('listeners of * get the default stream and the custom ones, once, and no reserved ones', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    for (const name of ['*', '', 'orders']) await subscribe(source, webhook, name);
    await subscribe('dc_*', webhook, '*');
    for (const stream of ['', 'orders', 'other']) expect(await listeners(source, stream)).toEqual([webhook]);
    for (const stream of ['$errors', '$logs']) expect(await listeners(source, stream)).toEqual([]);
  });

  it('and whether earlier events of the emitter are postponed, once, however many listeners it has', async () => {
    const [source, other] = [await routing.source(owner), await routing.source(owner)];
    for (let n = 0; n < 3; n++) await subscribe('dc_*', await routing.webhook(owner));
    await routing.database.query(
      "INSERT INTO postponed_event (ms, seq, owner_id, emitter_id, stream, headers, value) VALUES (1, 1, $1, $2, '', '{}', '')",
      [owner, source],
    );
    const { matches } = await matching.match([event(source, ''), event(other, '')]);
    expect(matches.map((match) => [match?.postponed, match?.listeners.length])).toEqual([
      [true, 3],
      [false, 3],
    ]);
  });

  it('and which emitters, known or not, have events that wait until they are known', async () => {
    const [source, other] = [await routing.source(owner), await routing.source(owner)];
    const [unknown, unknownToo] = [newId('source'), newId('workflow')];
    for (const [seq, id] of [source, unknown, unknown].entries()) {
      const values = [seq, id];
      await routing.database.query(
        "INSERT INTO unknown_event (ms, seq, emitter_id, stream, headers, value) VALUES (1, $1, $2, '', '{}', '')",
        values,
      );
    }
    const { matches, stored } = await matching.match([source, other, unknown, unknownToo, unknown].map((id) => event(id)));
    expect(matches.map((match) => match?.ownerId)).toEqual([owner, owner, undefined, undefined, undefined]);
    expect([...stored].sort()).toEqual([source, unknown].sort());
  });

  it('nobody of another account', async () => {
    const other = newId('user');
    const webhook = await routing.webhook(owner);
    for (const emitter of ['dc_*', 'p_*', owner]) await subscribe(emitter, webhook);
    expect(await listeners(await routing.source(other))).toEqual([]);
  });

  it('active listeners that exist: sources, workflows and webhooks', async () => {
    const emitter = await routing.source(owner);
    const [source, workflow, webhook] = [await routing.source(owner), await routing.workflow(owner), await routing.webhook(owner)];
    const [idleSource, idleWorkflow, idleWebhook] = [
      await routing.source(owner, { active: false }),
      await routing.workflow(owner, { active: false }),
      await routing.webhook(owner, { active: false }),
    ];
    for (const listener of [source, workflow, webhook, idleSource, idleWorkflow, idleWebhook]) await subscribe(emitter, listener);
    expect((await listeners(emitter))?.toSorted()).toEqual([source, workflow, webhook].toSorted());
  });

  it('no webhook of a suspended account, until the account is resumed', async () => {
    const [source, webhook, idle] = [
      await routing.source(owner),
      await routing.webhook(owner),
      await routing.webhook(owner, { active: false }),
    ];
    for (const listener of [webhook, idle]) await subscribe(source, listener);
    const suspend = (suspended: boolean) => routing.webhooks.suspend(owner, suspended);
    const targets = async () => (await routing.webhooks.findTargets([webhook, idle])).map(({ id, active }) => [id, active]).sort();
    expect([await suspend(true), await suspend(true), await listeners(source)]).toEqual([2, 0, []]);
    expect(await targets()).toEqual(
      [
        [webhook, false],
        [idle, false],
      ].sort(),
    );
    expect(await routing.webhooksService.get({ owner_id: owner, id: webhook })).toMatchObject({ active: true });
    expect([await suspend(false), await listeners(source)]).toEqual([2, [webhook]]);
    expect(await targets()).toEqual(
      [
        [webhook, true],
        [idle, false],
      ].sort(),
    );
  });

  it('its emitter only when that subscribes to itself by name', async () => {
    const [source, other] = [await routing.source(owner), await routing.source(owner)];
    for (const emitter of ['dc_*', owner]) for (const listener of [source, other]) await subscribe(emitter, listener);
    expect(await listeners(source)).toEqual([other]);
    await subscribe(source, source);
    expect((await listeners(source))?.toSorted()).toEqual([source, other].toSorted());
  });

  it('its listeners though its emitter is inactive, and with nobody when that is deleted', async () => {
    const webhook = await routing.webhook(owner);
    await subscribe('dc_*', webhook);
    expect(await listeners(await routing.source(owner, { active: false }))).toEqual([webhook]);
    expect(await listeners(await routing.source(owner, { deleted: true }))).toEqual([]);
  });

  it('the newest version of a webhook', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    await subscribe(source, webhook);
    const version = async () => (await matching.match([event(source)])).matches[0]?.listeners[0]?.version ?? NaN;
    const before = await version();
    await routing.webhooksService.update({ owner_id: owner, id: webhook, name: 'x' });
    expect(await version()).toBe(before + 1);
  });
});

describe('an event from before the end of a subscription', () => {
  /** Deletes the subscription. Returns its end. */
  const unsubscribe = async (emitter_id: string, listener_id: string, event_name = '') => {
    await routing.service.delete({ owner_id: owner, emitter_id, listener_id, event_name });
    const { rows } = await routing.database.query<{ ms: number }>(
      'SELECT max(ended_at_ms) AS ms FROM ended_subscription WHERE owner_id = $1 AND listener_id = $2',
      [owner, listener_id],
    );
    return rows[0]!.ms;
  };
  const idsOf = async (events: EmittedEvent[]) =>
    (await matching.match(events)).matches.map((match) => match?.listeners.map(({ id }) => id));

  it('goes to the listener that was subscribed, and a later one does not, from an outbox or not', async () => {
    const [source, webhook, other] = [await routing.source(owner), await routing.webhook(owner), await routing.webhook(owner)];
    await subscribe(source, webhook);
    await subscribe(source, other);
    const end = await unsubscribe(source, webhook);
    const [before, at, after] = [event(source, '', end - 1), event(source, '', end), event(source, '', end + 1)];
    const both = [webhook, other].sort();
    const events = [before, at, after, { ...at, fromOutbox: true as const }, { ...after, fromOutbox: true as const }];
    expect(await idsOf(events)).toEqual([both, both, [other], both, [other]]);
    expect(await idsOf([after])).toEqual([[other]]);
    expect((await matching.introduce([at]))[0]?.listeners).toHaveLength(2);
  });

  it('goes to the listeners of all emitters of a kind or of the account, of every stream, but of no other one', async () => {
    const [source, workflow, other] = [await routing.source(owner), await routing.workflow(owner), await routing.source(newId('user'))];
    const [ofAll, ofSources, ofErrors] = [await routing.webhook(owner), await routing.webhook(owner), await routing.webhook(owner)];
    const subscriptions: [string, WebhookId, string][] = [
      [owner, ofAll, ''],
      ['dc_*', ofSources, '*'],
      [source, ofErrors, '$errors'],
    ];
    for (const names of subscriptions) await subscribe(...names);
    for (const names of subscriptions) await unsubscribe(...names);
    const found = (id: EmitterId, ...streams: string[]) => idsOf(streams.map((stream) => event(id, stream, 1)));
    expect(await found(source, '', 'orders', '$errors', '$logs')).toEqual([[ofAll, ofSources].sort(), [ofSources], [ofErrors], []]);
    expect(await found(workflow, '', 'orders', '$errors')).toEqual([[ofAll], [], []]);
    expect(await found(other, '', 'orders', '$errors')).toEqual([[], [], []]);
  });

  it('does not go to the emitter itself, if the subscription was to all emitters', async () => {
    const source = await routing.source(owner);
    await subscribe('dc_*', source);
    await unsubscribe('dc_*', source);
    expect(await idsOf([event(source, '', 1), event(await routing.source(owner), '', 1)])).toEqual([[], [source]]);
  });

  it('goes to the listener once, until the last of its subscriptions to the stream has ended', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    for (const name of ['', 'default']) await subscribe(source, webhook, name);
    await subscribe('dc_*', webhook);
    const ends: number[] = [];
    const end = async (...names: [string, WebhookId, string]) => {
      await sleep(2);
      ends.push(await unsubscribe(...names));
    };
    await end(source, webhook, 'default');
    await end(source, webhook, '');
    await subscribe(source, webhook);
    await end(source, webhook, '');
    expect(await idsOf([event(source, '', ends[2]! + 1)])).toEqual([[webhook]]);
    await end('dc_*', webhook, '');
    expect(await idsOf([ends[0]!, ends[1]!, ends[2]!, ends[3]!, ends[3]! + 1].map((ms) => event(source, '', ms)))).toEqual([
      ...Array.from({ length: 4 }, () => [webhook]),
      [],
    ]);
    const { rows } = await routing.database.query('SELECT emitter_id FROM ended_subscription WHERE owner_id = $1', [owner]);
    expect(rows).toHaveLength(2);
    await subscribe(source, webhook);
    expect(await idsOf([event(source, '', 1), event(source)])).toEqual([[webhook], [webhook]]);
  });

  it('goes to no listener that is inactive or was deleted', async () => {
    const source = await routing.source(owner);
    const [idle, deleted, workflow] = [await routing.webhook(owner), await routing.webhook(owner), await routing.workflow(owner)];
    for (const listener of [idle, deleted, workflow]) await subscribe(source, listener);
    for (const listener of [idle, deleted, workflow]) await unsubscribe(source, listener);
    await routing.webhooksService.update({ owner_id: owner, id: idle, active: false });
    await routing.webhooksService.delete({ owner_id: owner, id: deleted });
    await routing.directory.learn(routing.state(owner, workflow, { version: 2, active: false, deleted: true }));
    expect(await idsOf([event(source, '', 1)])).toEqual([[]]);
    const { rows } = await routing.database.query('SELECT listener_id FROM ended_subscription WHERE owner_id = $1', [owner]);
    expect(rows).toEqual([{ listener_id: idle }]);
  });

  it('goes to the listener though its emitter was deleted meanwhile, but not if that is a workflow that was registered again', async () => {
    const webhook = await routing.webhook(owner);
    for (const id of [await routing.source(owner), await routing.workflow(owner)]) {
      await subscribe(id, webhook);
      const end = await unsubscribe(id, webhook);
      await routing.directory.learn(routing.state(owner, id, { version: 2, active: false, deleted: true }));
      const after = event(id, '', end + 1);
      expect(await idsOf([event(id, '', end), after, { ...after, fromOutbox: true }])).toEqual([[webhook], [], []]);
      await routing.directory.learn(routing.state(owner, id, { version: 3, created_at_ms: Date.now() + 60_000 }));
      expect(await idsOf([event(id, '', end)])).toEqual([[]]);
    }
  });

  it('costs a look at an index, unless the event may have been emitted before: older ends are not read', async () => {
    const source = await routing.source(owner);
    await routing.database.query(
      `INSERT INTO ended_subscription (owner_id, emitter_id, stream, listener_id, ended_at_ms)
       SELECT $1, $2, '', 'wh_x' || n, 1000 + n FROM generate_series(1, 10000) n`,
      [owner, source],
    );
    const pages = (ms: number) => pagesRead(routing.database, () => matching.match([event(source, '', ms)]));
    expect(await pages(Date.now() + 60_000)).toBeLessThan(50);
    expect(await pages(1)).toBeGreaterThan(100);
    // one of another account has ended after the event
    const other = { owner: newId('user'), ended_at_ms: Date.now() + 120_000 };
    await routing.database.query(
      "INSERT INTO ended_subscription (owner_id, emitter_id, stream, listener_id, ended_at_ms) VALUES ($1, $2, '', 'wh_x', $3)",
      [other.owner, source, other.ended_at_ms],
    );
    expect(await pages(Date.now() + 60_000)).toBeLessThan(50);
    await routing.database.query('ANALYZE ended_subscription');
    expect(await pages(Date.now() + 60_000)).toBeLessThan(50);
  });
});

describe('an event of a deleted emitter', () => {
  const remove = async (id: SourceId | WorkflowId) => {
    await routing.directory.learn(routing.state(owner, id, { version: 2, active: false, deleted: true }));
    const { rows } = await routing.database.query<{ ms: number }>('SELECT deleted_at_ms AS ms FROM emitter WHERE id = $1', [id]);
    return rows[0]!.ms;
  };
  const idsOf = async (events: EmittedEvent[]) =>
    (await matching.match(events)).matches.map((match) => match?.listeners.map(({ id }) => id));

  it('goes to the listeners that the emitter had if it was emitted before the deletion, or by a run of the emitter', async () => {
    for (const id of [await routing.source(owner), await routing.workflow(owner)]) {
      const [webhook, other, all] = [await routing.webhook(owner), await routing.webhook(owner), await routing.webhook(owner)];
      await subscribe(id, webhook);
      await subscribe(id, other, 'other');
      await subscribe(owner, all);
      const deletedAt = await remove(id);
      const [before, after] = [event(id, '', deletedAt), event(id, '', deletedAt + 1)];
      expect(await idsOf([before, after, { ...after, fromOutbox: true }, event(id, 'other', deletedAt)])).toEqual([
        [webhook, all],
        [],
        [webhook, all],
        [other],
      ]);
      expect((await matching.introduce([before]))[0]?.listeners).toHaveLength(2);
      await routing.webhooksService.delete({ owner_id: owner, id: webhook });
      expect(await idsOf([before])).toEqual([[all]]);
      await routing.subscriptions.delete(owner, owner, all, '');
    }
  });

  it('goes to the listeners that the emitter had until Kafka can have no event from before its deletion', async () => {
    const [source, webhook] = [await routing.source(owner), await routing.webhook(owner)];
    await subscribe(source, webhook);
    const before = event(source, '', await remove(source));
    const deleteOld = () => routing.subscriptions.deleteEnded({ days: 8, most: 100, minutes: 15 });
    await deleteOld();
    expect(await idsOf([before])).toEqual([[webhook]]);
    await routing.database.query("UPDATE ended_emitter SET ended_at = ended_at - interval '8 days' WHERE emitter_id = $1", [source]);
    await deleteOld();
    expect(await idsOf([before])).toEqual([[]]);
  });
});

describe('an emitter that routing does not know before its deletion', () => {
  const DAY_MS = 86_400_000;
  const removed = async (createdAtMs: number): Promise<SourceId> => {
    const id = newId('source');
    await routing.directory.learn(routing.state(owner, id, { active: false, deleted: true, version: 2, created_at_ms: createdAtMs }));
    return id;
  };
  const idsOf = async (events: EmittedEvent[]) =>
    (await matching.match(events)).matches.map((match) => match?.listeners.map(({ id }) => id));

  it('has the listeners of older auto-subscriptions for what it emitted, and its subscriptions are not listed', async () => {
    const [webhook, later] = [await routing.webhook(owner), await routing.webhook(owner)];
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook });
    const source = await removed(Date.now() + 1000);
    await routing.service.createAuto({ owner_id: owner, listener_id: later });
    expect(await idsOf([event(source, '', 1), { ...event(source), fromOutbox: true }, event(source)])).toEqual([[webhook], [webhook], []]);
    expect(await routing.service.list({ owner_id: owner })).toEqual([]);
  });

  it('has none if it was created when Kafka has no event any more', async () => {
    const webhook = await routing.webhook(owner);
    await routing.service.createAuto({ owner_id: owner, listener_id: webhook });
    await routing.database.query('UPDATE auto_subscription SET created_at_ms = 0 WHERE owner_id = $1', [owner]);
    const [old, younger] = [await removed(Date.now() - 8 * DAY_MS), await removed(Date.now() - 7 * DAY_MS)];
    expect(await idsOf([event(old, '', 1), event(younger, '', 1)])).toEqual([[], [webhook]]);
  });
});

describe('a batch of events', () => {
  it('returns matches in the order of the events, even if many have the same emitter', async () => {
    const [one, two, webhook, other] = [
      await routing.source(owner),
      await routing.source(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
    ];
    await subscribe(one, webhook);
    await subscribe(two, other, 'x');
    const { matches } = await matching.match([event(two, 'x'), event(one), event(newId('source')), event(two), event(one)]);
    expect(matches.map((match) => match?.listeners.map(({ id }) => id))).toEqual([[other], [webhook], undefined, [], [webhook]]);
    expect((await matching.match([])).matches).toEqual([]);
  });

  it('reads each subscription once, although it applies to several events', async () => {
    const sources = [await routing.source(owner), await routing.source(owner), await routing.source(owner)];
    const [all, everyStream, orders, own] = [
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
      await routing.webhook(owner),
    ];
    await subscribe('dc_*', all);
    await subscribe(owner, everyStream, '*');
    await subscribe(owner, orders, 'orders');
    await subscribe(sources[1]!, own);
    const query = jest.spyOn(routing.database, 'query');
    const events = sources.flatMap((source) => [event(source), event(source, 'orders'), event(source, '$errors')]);
    const { matches } = await matching.match(events);
    const results = await Promise.all(query.mock.results.map(({ value }) => value as Promise<{ rowCount: number }>));
    query.mockRestore();
    expect(results.map(({ rowCount }) => rowCount)).toEqual([4 + events.length]);
    const found = matches.map((match) => match?.listeners.map(({ id }) => id));
    expect(found).toEqual(
      sources.flatMap((source) => [[all, everyStream, ...(source === sources[1] ? [own] : [])], [everyStream, orders], []]),
    );
  });
});

describe('very many listeners', () => {
  const emitterWith = async (count: number): Promise<EmitterId> => {
    const [source, id] = [await routing.source(owner), newId('webhook').slice(0, -5)];
    await routing.database.query(
      `INSERT INTO emitter (id, kind, owner_id, active, deleted, version, created_at_ms)
       SELECT 'dc_' || $2::text || n, 'source', $1, true, false, 1, 0 FROM generate_series(10000, 9999 + $3::int) n`,
      [owner, id, count],
    );
    await routing.database.query(
      `INSERT INTO subscription (id, owner_id, emitter_id, event_name, stream, listener_id)
       SELECT 'sub_' || $3::text || n, $1, $2, '', '', 'dc_' || $3::text || n FROM generate_series(10000, 9999 + $4::int) n`,
      [owner, source, id, count],
    );
    return source;
  };
  const counts = async (events: EmittedEvent[]) => (await matching.match(events)).matches.map((match) => match?.listeners.length);

  it('are found for the first events only, but of one at least', async () => {
    const [few, many, most] = [await emitterWith(3), await emitterWith(12_000), await emitterWith(21_000)];
    expect(await counts([few, many, few, most, few].map((id) => event(id)))).toEqual([3, 12_000, 3]);
    expect(await counts([few, most].map((id) => event(id)))).toEqual([3]);
    expect(await counts([most, few].map((id) => event(id)))).toEqual([21_000]);
    expect((await matching.introduce([most, few, many].map((id) => event(id)))).map((match) => match?.listeners.length)).toEqual([
      21_000, 3, 12_000,
    ]);
  });

  it('are found for the first events only, but of one at least, also if they listen to all emitters', async () => {
    const [many, most] = [await emitterWith(12_000), await emitterWith(21_000)];
    await routing.database.query("UPDATE subscription SET emitter_id = 'dc_*' WHERE emitter_id = $1", [many]);
    const [one, two] = [await routing.source(owner), await routing.source(owner)];
    expect(await counts([one, two, one].map((id) => event(id)))).toEqual([12_000]);
    await routing.database.query("UPDATE subscription SET emitter_id = 'dc_*' WHERE emitter_id = $1", [most]);
    expect(await counts([one, two].map((id) => event(id)))).toEqual([33_000]);
  });

  it('are found for the first events only, but of one at least, also if their subscriptions have ended', async () => {
    const [few, many, most] = [await emitterWith(3), await emitterWith(12_000), await emitterWith(21_000)];
    await routing.database.query(
      `WITH ended AS (DELETE FROM subscription WHERE owner_id = $1 RETURNING *)
       INSERT INTO ended_subscription (owner_id, emitter_id, stream, listener_id, ended_at_ms)
       SELECT owner_id, emitter_id, stream, listener_id, 1000 FROM ended`,
      [owner],
    );
    expect(await counts([few, many, few, most, few].map((id) => event(id, '', 1000)))).toEqual([3, 12_000, 3]);
    // each event has a list of those that were subscribed at its time
    expect(await counts([few, many, many, many].map((id) => event(id, '', 1000)))).toEqual([3, 12_000, 12_000]);
    expect(await counts([most, few].map((id) => event(id, '', 1000)))).toEqual([21_000]);
    expect(await counts([few, many, few, most, few].map((id) => event(id, '', 1001)))).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('an event of an emitter that is not known yet', () => {
  it('is matched when the catalog knows it: globs and auto-subscriptions reach it', async () => {
    const [webhook, auto] = [await routing.webhook(owner), await routing.webhook(owner)];
    await subscribe('dc_*', webhook);
    await routing.service.createAuto({ owner_id: owner, listener_id: auto, event_name: 'x' });
    const source = newId('source');
    routing.catalog.set(source, routing.state(owner, source, { created_at_ms: Date.now() + 10 }));
    expect((await matching.match([event(source)])).matches).toEqual([undefined]);
    const matches = await matching.introduce([event(source), event(source, 'x'), event(newId('source'))]);
    expect(matches.map((match) => match?.listeners.map(({ id }) => id))).toEqual([[webhook], [auto], undefined]);
  });

  it('is matched when the catalog knows that it was deleted meanwhile', async () => {
    const [webhook, auto] = [await routing.webhook(owner), await routing.webhook(owner)];
    await subscribe(owner, webhook);
    await routing.service.createAuto({ owner_id: owner, listener_id: auto, event_name: '' });
    const ids = [newId('source'), newId('workflow')];
    for (const id of ids)
      routing.catalog.set(id, routing.state(owner, id, { version: 2, active: false, deleted: true, created_at_ms: Date.now() + 10 }));
    const matches = await matching.introduce(ids.map((id) => event(id, '', Date.now())));
    for (const match of matches) expect(match?.listeners.map(({ id }) => id).sort()).toEqual([webhook, auto].sort());
    expect(await routing.service.list({ owner_id: owner })).toHaveLength(1);
  });

  it('is matched when the catalog knows that its workflow has returned', async () => {
    const [webhook, workflow] = [await routing.webhook(owner), await routing.workflow(owner)];
    await subscribe('p_*', webhook);
    await routing.directory.learn(routing.state(owner, workflow, { version: 2, active: false, deleted: true }));
    expect((await matching.match([event(workflow)])).matches).toEqual([
      { ownerId: owner, isRemoved: true, postponed: false, listeners: [] },
    ]);
    expect(await matching.introduce([event(workflow)])).toEqual([undefined]);
    routing.catalog.set(workflow, routing.state(owner, workflow, { version: 3, created_at_ms: Date.now() + 10 }));
    const [match] = await matching.introduce([event(workflow)]);
    expect(match?.listeners.map(({ id }) => id)).toEqual([webhook]);
  });
});
