import { describe, expect, it } from '@jest/globals';
import { type EventListener, newId, type SourceId, type UserId, type WebhookId, type WorkflowId } from '#contracts';
import { type EmittedEvent, eventIdOf, eventPlace, runIdOf } from '#events';
import type { LogRecord } from '#messaging';
import { EventListenersController } from './event-listeners.controller.js';
import { listenersOf, type Traces } from './event-listeners.js';
import type { EmitterReplay, EventListenersRepository, Subscriber } from './event-listeners.repository.js';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 24 * 3_600_000];
const subscription_id = newId('subscription');
const AT = Date.now() + MINUTE;
const laterSubscription = `sub_z${subscription_id.slice(5)}` as Subscriber['subscription_id'];
const event: EmittedEvent = {
  ...{ kind: 'event', place: eventPlace({ clock: AT, offset: 7, partition: 3 }), emitterId: 'dc_M', stream: 'default', emitId: 'e1' },
  ...{ json: Buffer.from('{}'), hops: 0 },
};
const EVENT_ID = eventIdOf(event.place);
const ids = { source: 'dc_L' as SourceId, workflow: 'p_L' as WorkflowId, webhook: 'wh_L' as WebhookId };
type Kind = EventListener['kind'];

/** A listener that subscribed before the event and was always active. */
const subscriber = (kind: Kind, change: Partial<Subscriber> = {}): Subscriber => ({
  ...{ listener_id: ids[kind], subscription_id, active: true, activated_at_ms: 0, deactivated_at_ms: 0 },
  ...change,
});
const replay = (change: Partial<EmitterReplay> = {}): EmitterReplay => ({
  ...{ id: 'rpl_1', listener_id: 'dc_L', stream: 'default', from_id: '0-0', to_id: EVENT_ID, offsets: {} },
  ...change,
});
const at = (age: number, traces: Partial<Traces>, failedKeptMs = 7 * DAY) =>
  listenersOf(
    event,
    { postponed: false, deliveries: [], beyond: new Set(), subscribers: [], replays: [], ...traces },
    { now: AT + age, failedKeptMs },
  );
const statusOf = (age: number, listener: Subscriber) => at(age, { subscribers: [listener] }).listeners[0]?.status;

it.each<[Kind, boolean]>([
  ['source', true],
  ['webhook', true],
  ['workflow', true],
  ['webhook', false],
])('a %s will get an event that is postponed if it is active, whenever it has subscribed: %s', (kind, active) => {
  const listener = subscriber(kind, { active, subscription_id: laterSubscription });
  expect(at(30 * DAY, { postponed: true, subscribers: [listener] }).listeners.map(({ status }) => status)).toEqual(
    active ? ['pending'] : [],
  );
});

describe('a listener of which nothing is stored', () => {
  const never = undefined;
  const switchedOff = { active: false, deactivated_at_ms: AT + 1 };
  const switchedOn = { activated_at_ms: AT + 1, deactivated_at_ms: AT - 1 };
  const changed = { activated_at_ms: AT + 1, deactivated_at_ms: AT + 1 };
  it.each<[string, Kind, Partial<Subscriber>, number, EventListener['status'] | undefined]>([
    ['subscribed before the event', 'source', {}, MINUTE, 'pending'],
    ['subscribed before the event', 'source', {}, HOUR, never],
    ['subscribed before the event', 'webhook', {}, MINUTE - 1, 'pending'],
    ['subscribed before the event', 'webhook', {}, MINUTE, never],
    ['subscribed before the event', 'workflow', {}, 30 * DAY, 'succeeded'],
    ['subscribed after the event', 'source', { subscription_id: laterSubscription }, 1, never],
    ['subscribed after the event', 'webhook', { subscription_id: laterSubscription }, 1, never],
    ['subscribed after the event', 'workflow', { subscription_id: laterSubscription }, 1, never],
    ['subscribed after the event and is inactive', 'source', { subscription_id: laterSubscription, active: false }, 1, never],
    ['is inactive', 'source', { active: false }, 30 * DAY, 'skipped'],
    ['is inactive', 'webhook', { active: false }, 30 * DAY, 'skipped'],
    ['is inactive', 'workflow', { active: false }, 30 * DAY, 'skipped'],
    ['was activated after the event', 'source', switchedOn, 1, 'skipped'],
    ['was activated after the event', 'workflow', switchedOn, 1, 'skipped'],
    ['was deactivated after the event', 'source', switchedOff, DAY, 'skipped'],
    ['was deactivated after the event', 'source', switchedOff, 7 * DAY, never],
    ['was deactivated after the event', 'workflow', switchedOff, DAY, 'succeeded'],
    ['was switched twice after the event', 'source', { activated_at_ms: AT + 2, deactivated_at_ms: AT + 1 }, 1, never],
    ['was switched twice after the event', 'workflow', { activated_at_ms: AT + 2, deactivated_at_ms: AT + 1 }, 1, never],
    ['was changed after the event', 'webhook', changed, 1, never],
    ['was changed after the event and is inactive', 'webhook', { ...changed, active: false }, 1, never],
  ])('a listener that %s: a %s %j after %d ms is %s', (_, kind, change, age, status) => {
    expect(statusOf(age, subscriber(kind, change))).toBe(status);
  });

  it.each([
    [1, 'webhook', {}, 'succeeded'],
    [7 * DAY - 1, 'webhook', {}, 'succeeded'],
    [7 * DAY, 'webhook', {}, never],
    [1, 'webhook', { active: false }, 'skipped'],
    [1, 'webhook', { subscription_id: laterSubscription }, never],
  ] as const)('a listener that got later events of the emitter after %d ms: a %s %j is %s', (age, kind, change, status) => {
    const { listeners } = at(age, { subscribers: [subscriber(kind, change)], beyond: new Set([ids.webhook]) });
    expect(listeners[0]?.status).toBe(status);
    // its delivery can be retried
    expect(listeners[0]?.delivery_id ?? null).toEqual(status === 'succeeded' ? expect.stringMatching(/^del_/) : null);
  });

  it.each([
    [DAY, DAY - 1, 'succeeded'],
    [DAY, DAY, never],
    [30 * DAY, 8 * DAY, 'succeeded'],
  ])('counts as delivered only while failed deliveries are kept, here for %d ms: after %d ms it is %s', (failedKeptMs, age, status) => {
    const { listeners } = at(age, { subscribers: [subscriber('webhook')], beyond: new Set([ids.webhook]) }, failedKeptMs);
    expect(listeners[0]?.status).toBe(status);
  });

  it('has no run: the runtime knows which runs exist', () => {
    expect(at(1, { subscribers: [subscriber('source')] }).listeners).toEqual([
      { listener_id: 'dc_L', kind: 'source', delivery_id: null, run_id: null, status: 'pending', attempts: [] },
    ]);
  });
});

it('a stored delivery counts more than the state of the webhook', () => {
  const deliveries = [{ webhook_id: ids.webhook, status: 'succeeded' as const, attempts: [] }];
  const { listeners } = at(DAY, { deliveries, subscribers: [subscriber('webhook', { active: false })] });
  expect(listeners).toMatchObject([{ listener_id: 'wh_L', status: 'succeeded', delivery_id: expect.stringMatching(/^/) }]);
});

it('the attempts of a delivery have their members in one order, however the database has stored them', () => {
  const stored = { ts: 5, error: null, duration_ms: 1, status_code: 200, response_body: 'ok' };
  const { listeners } = at(DAY, { deliveries: [{ webhook_id: ids.webhook, status: 'succeeded', attempts: [stored] }] });
  expect(Object.keys(listeners[0]!.attempts[0]!)).toEqual(['ts', 'status_code', 'duration_ms', 'error', 'response_body']);
});

describe('a replay', () => {
  const replayedBy = (change: Partial<EmitterReplay>) => at(DAY, { replays: [replay(change)] });

  it('a replay to a source that does not listen is looked for in its runs, the oldest replay first', () => {
    const { runs, listeners } = at(DAY, { replays: [replay({ id: 'rpl_2' }), replay()] });
    expect(runs.replayed).toEqual(['rpl_1', 'rpl_2'].map((id) => ({ run_id: `${id}-${runIdOf(event, 'dc_L')}`, source_id: 'dc_L' })));
    expect(listeners).toEqual([]);
  });

  it.each([{ stream: 'other' }, { to_id: '1-1' }, { from_id: `${AT + 1}-0`, to_id: `${AT + 2}-0` }])(
    'a replay of other events does not concern this event: %j',
    (change) => expect(replayedBy(change).runs.replayed).toEqual([]),
  );

  it.each([
    [{ 3: 8 }, [{ listener_id: 'p_L', kind: 'workflow', status: 'succeeded' }]],
    [{ 3: 7 }, []],
    [{}, []],
  ])('a replay to a workflow has delivered what is before its offsets: %j', (offsets, listed) => {
    expect(replayedBy({ listener_id: ids.workflow, offsets }).listeners).toMatchObject(listed);
  });

  it('a replay to a workflow that was inactive has succeeded', () => {
    const traces = {
      replays: [replay({ listener_id: ids.workflow, offsets: { 3: 8 } })],
      subscribers: [subscriber('workflow', { active: false })],
    };
    expect(at(DAY, traces).listeners).toMatchObject([{ status: 'succeeded' }]);
  });
});

describe('a list of listeners', () => {
  const attempt = (body: string) => ({ ts: 5, status_code: 500, duration_ms: 1, error: null, response_body: body });
  /** A controller whose events all exist, and which finds these. */
  function controllerOf({ deliveries = [], subscribers = [] }: Partial<Pick<Traces, 'deliveries' | 'subscribers'>>, created_at_ms = 0) {
    const asked = { flushed: [] as unknown[], beyond: [] as WebhookId[][] };
    const repository = {
      isPostponed: async () => false,
      async *deliveries() {
        yield* deliveries;
      },
      subscribers: async () => subscribers,
      beyond: async (...[, , , webhookIds]: Parameters<EventListenersRepository['beyond']>) => {
        asked.beyond.push(webhookIds);
        return new Set(webhookIds);
      },
      replays: async () => [],
    };
    const directory = { requireOwned: async (owner_id: UserId) => ({ owner_id, created_at_ms }) };
    const log = { flush: async (only: unknown) => void asked.flushed.push(only) };
    const parts = [repository, directory, { look: async () => event }, log, { failedKeptMs: 7 * DAY }] as never as ConstructorParameters<
      typeof EventListenersController
    >;
    const controller = new EventListenersController(...parts);
    const list = (owner_id: UserId = 'u_1', deadline?: string) =>
      controller.list({ owner_id, emitter_id: event.emitterId, event_id: EVENT_ID }, { header: () => deadline } as unknown as LogRecord);
    return { list, repository, asked };
  }

  it('has all attempts of the first deliveries, and the last one of further deliveries without its response', async () => {
    const large = 'x'.repeat(300 * 1024);
    const deliveries = ['wh_1', 'wh_2', 'wh_3'].map((webhook_id) => ({
      ...{ webhook_id: webhook_id as WebhookId, status: 'failed' as const },
      attempts: [attempt(large), { ...attempt('no'), ts: 6 }],
    }));
    const { listeners } = await controllerOf({
      deliveries: [...deliveries, ...deliveries.map((each) => ({ ...each, webhook_id: `${each.webhook_id}b` as const }))],
    }).list();
    const bodies = listeners.map(({ attempts }) => attempts.map(({ ts, response_body }) => [ts, response_body?.length ?? null]));
    const [whole, short] = [
      [
        [5, large.length],
        [6, 2],
      ],
      [[6, null]],
    ];
    expect(bodies).toEqual([whole, whole, whole, short, short, short]);
  });

  it('is not made for a caller that has stopped waiting for it', async () => {
    const { list, asked } = controllerOf({});
    await expect(list('u_1', String(Date.now() - 1))).rejects.toThrow('the request expired before its turn');
    expect(asked.flushed).toEqual([]);
  });

  it('does not write the deliveries of other emitters to the database', async () => {
    const { list, asked } = controllerOf({});
    await list();
    expect(asked.flushed).toEqual([event.emitterId]);
  });

  it.each([
    ['that have no stored delivery', AT, ['wh_M']],
    ['unless the event is older than its emitter', AT + 1, []],
  ])('is supplemented by later events at subscribed webhooks %s', async (_, createdAt, expected) => {
    const subscribers = [subscriber('webhook'), subscriber('source'), subscriber('webhook', { listener_id: 'wh_M' })];
    const deliveries = [{ webhook_id: ids.webhook, status: 'succeeded' as const, attempts: [] }];
    const { list, asked } = controllerOf({ deliveries, subscribers }, createdAt);
    await list();
    expect(asked.beyond).toEqual([expected]);
  });

  it('waits while two others of its account are being made, and not for those of other accounts', async () => {
    const { list, repository } = controllerOf({});
    const { promise, resolve } = Promise.withResolvers<never[]>();
    let looked = 0;
    repository.replays = () => {
      looked++;
      return promise;
    };
    const lists = [...Array.from({ length: 3 }, () => list()), list('u_2')];
    await new Promise((turn) => setTimeout(turn, 10));
    expect(looked).toBe(3);
    resolve([]);
    await Promise.all(lists);
    expect(looked).toBe(4);
  });
});
