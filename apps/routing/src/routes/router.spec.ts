import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EmitterId, ListenerId, UserId } from '#contracts';
import { type DeletedRange, deletionRecord, type EmittedEvent, MAX_EVENT_BYTES } from '#events';
import type { EmitterDirectory } from '#emitters';
import { LogRecord, type OutgoingRecord, type Publisher, sizeOf, type Task } from '#messaging';
import { createLog, type Log } from '#observability';
import { SecretBox } from '#secrets';
import type { Stats } from '#stats';
import type { Delivery } from '../deliveries/delivery.js';
import type { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { CONFIG } from '../deliveries/simulation/replica-for-tests.js';
import { EventTasks } from './event-tasks.js';
import type { Match, MatchRepository } from './match.repository.js';
import type { PostponedEvents } from './postponed-events.js';
import type { Postponed } from './postponed-events.repository.js';
import { Router } from './router.js';
import type { UnknownEvents } from './unknown-events.js';
import type { Withdrawals } from './withdrawals.js';

const OWNER = 'u_1';
const box = new SecretBox([Buffer.alloc(32, 1)]);
let sent: OutgoingRecord[];
let attempted: string[];
const CLOCK = 1_700_000_000_000;
/** The emitters of the events that were counted, and the times of these. */
let counted: EmitterId[];
let countedAt: number[];
/** The listeners of an emitter. */
let listeners: Record<string, ListenerId[]>;
/** The owners of emitters of other accounts. */
let owners: Record<string, UserId>;
let dispatcher: { firstAttempt(delivery: Delivery, version: number, ownerId: UserId): Task };
/** Emitters that only the catalog knows. */
let unknown: Set<string>;
let introduced: string[][];
/** Whether a workflow was removed. */
let isRemoved: (id: string) => boolean;
/** The emitters whose owners were looked up together. */
let lookedUp: EmitterId[][];
/** The deletions of events. */
let withdrawn: (DeletedRange & { owner: UserId | undefined })[];
/** The number of records in each request to Kafka. */
let requests: number[];
let kafkaIsAway: boolean;
/** Which records Kafka never takes. */
let isRefused: (record: OutgoingRecord) => boolean;
/** Kafka takes records only after a while. */
let pauses: boolean;
/** The bytes that are being sent, and the most that were. */
let inProgress: number;
let mostInProgress: number;
let catalogIsAway: boolean;
/** Of how many events the listeners are found at once. */
let mostMatches: number;
/** Which events are postponed, those that were, and those that the pace of an account counts. */
let isPostponed: (event: EmittedEvent) => boolean;
let added: string[];
let included: string[];
let databaseIsAway: boolean;
/** The emitters with events in the database that wait until they are known, all events that were stored there, and whether it takes no more. */
let waiting: Set<EmitterId>;
let stored: string[];
let isFull: boolean;
let log: Log;
let router: Router;

const match = (event: EmittedEvent): Match | undefined =>
  listeners[event.emitterId] && {
    ownerId: owners[event.emitterId] ?? OWNER,
    postponed: false,
    listeners: listeners[event.emitterId]?.map((id) => ({ id, version: id.startsWith('wh_') ? 1 : null })) ?? [],
  };

beforeEach(() => {
  [sent, attempted, counted, countedAt] = [[], [], [], []];
  [listeners, unknown, introduced, kafkaIsAway, catalogIsAway] = [{}, new Set(), [], false, false];
  [withdrawn, requests, lookedUp, owners, mostMatches] = [[], [], [], {}, Infinity];
  [pauses, inProgress, mostInProgress, isRefused] = [false, 0, 0, () => false];
  [isPostponed, added, included, databaseIsAway] = [() => false, [], [], false];
  [waiting, stored, isFull] = [new Set(), [], false];
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      if (kafkaIsAway) throw new Error('Kafka is down');
      if (records.some(isRefused)) throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' });
      const bytes = records.reduce((sum, each) => sum + sizeOf(each), 0);
      mostInProgress = Math.max(mostInProgress, (inProgress += bytes));
      if (pauses) await nextTurn();
      inProgress -= bytes;
      sent.push(...records);
      requests.push(records.length);
    },
  } as unknown as Publisher;
  isRemoved = () => false;
  const matching = {
    match: async (events: EmittedEvent[]) => ({
      matches: events.slice(0, mostMatches).map((event) => {
        if (isRemoved(event.emitterId)) return { ownerId: OWNER, isRemoved: true, postponed: false, listeners: [] };
        return unknown.has(event.emitterId) ? undefined : match(event);
      }),
      stored: new Set(waiting),
    }),
    introduce: async (events: EmittedEvent[]) => {
      introduced.push(events.map(({ emitterId }) => emitterId));
      if (catalogIsAway) throw new Error('the catalog is down');
      for (const { emitterId } of events) unknown.delete(emitterId);
      return events.map(match);
    },
  } as unknown as MatchRepository;
  dispatcher = {
    firstAttempt: ({ webhookId, emitterId, json }: Delivery): Task => ({
      lane: `${webhookId} ${emitterId}`,
      run: async () => void attempted.push(`${json.toString()} to ${webhookId}`),
    }),
  };
  const stats = {
    countEvent: (id: EmitterId, ms: number) => {
      counted.push(id);
      countedAt.push(ms);
    },
  } as unknown as Stats;
  const withdrawals = {
    task: (range: DeletedRange, owner?: UserId): Task => ({
      lane: `deleted ${range.emitterId}`,
      run: async () => void withdrawn.push({ ...range, owner }),
    }),
  } as unknown as Withdrawals;
  const emitters = {
    find: async (ids: EmitterId[]) => {
      if (catalogIsAway) throw new Error('the catalog is down');
      lookedUp.push(ids);
      return new Map(ids.flatMap((id) => (unknown.has(id) ? [] : [[id, { owner_id: owners[id] ?? OWNER }]])));
    },
    known: async (ids: EmitterId[]) => new Map(ids.flatMap((id) => (owners[id] ? [[id, { owner_id: owners[id] }]] : []))),
  } as unknown as EmitterDirectory;
  log = createLog('test', 'silent');
  const tasks = new EventTasks(log, publisher, dispatcher as unknown as Dispatcher, stats);
  const postponed = {
    decider: () => ({
      isPostponed: (event: EmittedEvent) => isPostponed(event),
      include: ({ json }: EmittedEvent) => void included.push(json.toString()),
      begin: () => {},
    }),
    add: async (events: Postponed[]) => {
      if (databaseIsAway) throw new Error('the database is down');
      added.push(...events.map(({ event }) => event.json.toString()));
    },
  } as unknown as PostponedEvents;
  const unknownEvents = {
    whileNoneMoves: <T>(work: () => Promise<T>) => work(),
    get isFull() {
      return isFull;
    },
    add: async (events: Postponed[]) => {
      if (isFull) throw new Error('too many');
      for (const { event } of events) waiting.add(event.emitterId);
      stored.push(...events.map(({ event }) => event.json.toString()));
    },
  } as unknown as UnknownEvents;
  router = new Router(log, publisher, matching, tasks, postponed, unknownEvents, CONFIG, withdrawals, box, emitters);
});

let offset = 0;
const record = (key: string, json: string, headers: Record<string, string> = {}): LogRecord =>
  new LogRecord(
    'events',
    3,
    { offset: String((offset += 1)), key: Buffer.from(key), value: Buffer.from(json), headers } as unknown as KafkaMessage,
    CLOCK,
  );
const run = async (plans: Task[][]) => {
  for (const task of plans.flat()) await task.run(() => {});
};
const payload = (topic: string) =>
  sent.filter((each) => each.topic === topic).map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);

describe('an event that a relay has sent twice', () => {
  const outbox = { ce_id: 'emit', 'sluice-outbox': '7' };

  it('is routed once, also when its first record is read again', async () => {
    listeners.dc_1 = ['wh_1'];
    const [first, second] = [record('dc_1', '1', outbox), record('dc_1', '1', outbox)];
    await run(await router.plan([first, second]));
    expect(attempted).toEqual(['1 to wh_1']);
    await run(await router.plan([second]));
    expect(attempted).toHaveLength(1);
    await run(await router.plan([first, second]));
    expect(attempted).toHaveLength(2);
  });

  it('is not confused with one of another emitter or stream, or of a producer that has no outbox', async () => {
    [listeners.dc_1, listeners.dc_2] = [['wh_1'], ['wh_2']];
    const others = [record('dc_2', '2', outbox), record('dc_1', '3', { ...outbox, ce_type: 'x' })];
    const outside = [record('dc_1', '4', { ce_id: 'other' }), record('dc_1', '4', { ce_id: 'other' })];
    await run(await router.plan([record('dc_1', '1', outbox), ...others, ...outside]));
    expect(attempted).toEqual(['1 to wh_1', '2 to wh_2', '3 to wh_1', '4 to wh_1', '4 to wh_1']);
  });
});

it('the deletion of events withdraws their deliveries', async () => {
  const { headers, value } = deletionRecord({ emitterId: 'dc_1', endId: '1700000000000-5', stream: 'x' }, box);
  await run(await router.plan([record('dc_1', value.toString(), headers)]));
  const unsigned = record('dc_1', value.toString(), { ...headers, ce_sluicesignature: 'x' });
  await run(await router.plan([unsigned]));
  expect(withdrawn).toMatchObject([
    { emitterId: 'dc_1', owner: undefined, start: null, end: { ms: 1_700_000_000_000, seq: 5 }, stream: 'x' },
  ]);
});

it('the deletion of events belongs to the account of their emitter', async () => {
  owners.dc_owned = 'u_2';
  const { headers, value } = deletionRecord({ emitterId: 'dc_owned' }, box);
  await run(await router.plan([record('dc_owned', value.toString(), headers)]));
  expect(withdrawn.map(({ owner }) => owner)).toEqual(['u_2']);
});

describe('an event that is postponed', () => {
  it('has no tasks yet, and those after it have', async () => {
    [listeners.dc_1, listeners.dc_2] = [['wh_1'], ['wh_2']];
    isPostponed = ({ emitterId }) => emitterId === 'dc_1';
    const plans = await router.plan([record('dc_1', '1'), record('dc_2', '2'), record('dc_1', '3')]);
    await run(plans);
    expect(plans.map(({ length }) => length)).toEqual([0, 1, 0]);
    expect([added, attempted, counted]).toEqual([['1', '3'], ['2 to wh_2'], ['dc_2']]);
  });

  it('is planned again with its batch, of which nothing has begun, while the database is down', async () => {
    [listeners.dc_1, listeners.dc_2] = [['wh_1'], ['wh_2']];
    isPostponed = ({ emitterId }) => emitterId === 'dc_1';
    const records = [record('dc_2', '1'), record('dc_1', '2')];
    databaseIsAway = true;
    await expect(router.plan(records)).rejects.toThrow('the database is down');
    databaseIsAway = false;
    await run(await router.plan(records));
    expect([added, attempted, counted]).toEqual([['2'], ['1 to wh_2'], ['dc_2']]);
  });

  it('counts as one task, however many listeners it has', async () => {
    listeners.dc_1 = Array.from({ length: 7000 }, (_, index) => `wh_${index}` as ListenerId);
    isPostponed = () => true;
    expect(await router.plan([record('dc_1', '1'), record('dc_1', '2'), record('dc_1', '3')])).toHaveLength(3);
  });
});

it('an event that does not fit into a plan counts for the pace of its account only in the next one', async () => {
  listeners.dc_1 = Array.from({ length: 5000 }, (_, index) => `wh_${index}` as ListenerId);
  const records = [record('dc_1', '1'), record('dc_1', '2')];
  const { length } = await router.plan(records);
  expect([length, included]).toEqual([1, ['1']]);
  await router.plan(records.slice(length));
  expect(included).toEqual(['1', '2']);
});

describe('an event is counted', () => {
  it('an event counts for its emitter once, with or without listeners, unless it is an error or a log', async () => {
    [listeners.dc_1, listeners.dc_2] = [['wh_1', 'wh_2', 'dc_2'], []];
    const streams = ['default', 'x', '$errors', '$logs'].map((ce_type) => record('dc_1', '{}', { ce_type }));
    await run(await router.plan([...streams, record('dc_2', '1'), record('dc_unknown', '1')]));
    expect(counted.sort()).toEqual(['dc_1', 'dc_1', 'dc_2']);
  });

  it('only when its first task runs, because another process may have to plan it, and not again when the task is repeated', async () => {
    listeners.dc_1 = ['wh_1', 'wh_2'];
    await router.plan([record('dc_1', '1')]);
    expect(counted).toEqual([]);
    const [[task]] = (await router.plan([record('dc_1', '1')])) as [[Task, Task]];
    for (let n = 0; n < 2; n++) await task.run(() => {});
    expect([counted, countedAt]).toEqual([['dc_1'], [CLOCK]]);
  });
});

describe('a large event with very many listeners', () => {
  const sources = Array.from({ length: 300 }, (_, index) => `dc_${1000 + index}` as ListenerId);
  const large = JSON.stringify('x'.repeat(1_000_000));

  it('becomes a run of each, of which few are in memory at a time', async () => {
    [listeners.dc_1, pauses] = [sources, true];
    await run(await router.plan([record('dc_1', large)]));
    expect(payload('runtime.run.execute').map(({ source_id }) => source_id)).toEqual(sources);
    expect(mostInProgress).toBeLessThan(4 * 1024 * 1024);
  });

  it('does not delay the triggers of other accounts, and those of its account are behind it', async () => {
    [listeners.dc_1, listeners.dc_2, listeners.dc_neighbour] = [sources, ['dc_9'], ['dc_9']];
    owners.dc_neighbour = 'u_2';
    const plan = async (emitter: string, json: string) => (await router.plan([record(emitter, json)])).flat() as [Task];
    const [[slow], [same], [other]] = [await plan('dc_1', large), await plan('dc_2', '2'), await plan('dc_neighbour', '3')];
    expect(same.lane).toBe(slow.lane);
    expect(other.lane).not.toBe(slow.lane);
    await other.run(() => {});
    expect(sent).toHaveLength(1);
  });
});

it('a trigger that Kafka refuses is set aside, and those of the account continue', async () => {
  listeners.dc_1 = ['dc_2', 'p_3'];
  isRefused = ({ topic, value }) => topic === 'workflow-triggers' && String(value) === '2';
  await run(await router.plan(['1', '2', '3'].map((json) => record('dc_1', json))));
  expect(payload('workflow-triggers')).toEqual([1, 3]);
  expect(payload('runtime.run.execute')).toHaveLength(3);
  expect(payload('routing.dead-letter')).toEqual([2]);
});

it('the trigger of a workflow fits into its topic, whatever headers its event has', async () => {
  listeners.dc_1 = ['p_3'];
  const long = '\uFFFD'.repeat(400 * 1024);
  const headers = { tracestate: long, traceparent: long, ce_time: long, ce_id: '\uFFFD'.repeat(256), ce_subject: 'x'.repeat(5000) };
  await run(await router.plan([record('dc_1', JSON.stringify('x'.repeat(MAX_EVENT_BYTES - 2)), headers)]));
  expect(sent.map(({ topic }) => topic)).toEqual(['workflow-triggers']);
  const { value, headers: sentHeaders = {} } = sent[0]!;
  const bytes = Object.values(sentHeaders).reduce((sum, header) => sum + Buffer.byteLength(header), value!.length);
  expect(bytes).toBeLessThan(MAX_EVENT_BYTES + 16 * 1024);
});

describe('an event goes', () => {
  it('the dispatcher gets events for webhooks, sources get runs, and workflows get triggers', async () => {
    listeners.dc_1 = ['wh_1', 'dc_2', 'p_3'];
    await run(await router.plan([record('dc_1', '{"a":1}', { ce_id: 'emit', ce_hops: '2', ce_summary: 'S', ce_type: 'x' })]));
    expect(attempted).toEqual(['{"a":1} to wh_1']);
    expect(payload('runtime.run.execute')).toEqual([
      {
        run_id: expect.stringMatching(/^event-[0-9a-f]{40}$/),
        owner_id: OWNER,
        source_id: 'dc_2',
        trigger: 'event',
        event: '{"a":1}',
        due_at_ms: 1_700_000_000_000,
        hops: 2,
        // it begins here, and becomes two
        cause: { root: 'emit', spread: 2 },
      },
    ]);
    const trigger = sent.find(({ topic }) => topic === 'workflow-triggers');
    expect(trigger).toMatchObject({
      key: 'p_3',
      headers: {
        ce_id: 'emit',
        ce_source: 'dc_1',
        ce_type: 'x',
        ce_summary: 'S',
        // with the workflow, which passes it on
        ce_hops: '3',
        ce_sluiceroot: 'emit',
        ce_sluicespread: '2',
        ce_eventid: `1700000000000-${offset * 4096 + 3}`,
      },
    });
    expect(String(trigger?.value)).toBe('{"a":1}');
  });

  it('the attribute eventid that a producer has set reaches workflows', async () => {
    listeners.dc_1 = ['p_3'];
    await run(await router.plan([record('dc_1', '1', { ce_eventid: 'mine' })]));
    expect(sent[0]?.headers).toMatchObject({ ce_eventid: 'mine', ce_sluiceevent: `1700000000000-${offset * 4096 + 3}` });
  });

  it('as the same run when it is read twice, or was sent twice', async () => {
    listeners.dc_1 = ['dc_2', 'dc_3'];
    await run(
      await router.plan([record('dc_1', '1', { ce_id: 'a' }), record('dc_1', '1', { ce_id: 'a' }), record('dc_1', '1', { ce_id: 'b' })]),
    );
    const ids = payload('runtime.run.execute').map(({ run_id }) => run_id);
    expect(ids).toHaveLength(6);
    expect(new Set(ids).size).toBe(4);
  });

  it('nowhere when nobody listens, and when it waits', async () => {
    listeners.dc_1 = [];
    listeners.dc_2 = ['wh_1'];
    const plans = await router.plan([
      record('dc_1', '1'),
      record('dc_2', '1', { ce_type: '$in', ce_sluicedueat: '5', 'sluice-outbox': '8' }),
    ]);
    expect(plans).toEqual([[], []]);
  });

  it('a malformed event goes to the dead-letter topic', async () => {
    await run(await router.plan([record('dc_1', '{'), record('x', '1'), record('dc_1', '{', { ce_type: '$errors' })]));
    const deadLetters = sent.filter(({ topic }) => topic === 'routing.dead-letter');
    expect(deadLetters.map(({ headers }) => headers?.['dead-letter-reason'])).toEqual([
      expect.stringMatching(/not JSON/),
      'the key is not the id of a source or workflow',
      expect.stringMatching(/not JSON/),
    ]);
    // reported to its emitter, except a malformed error
    const errors = sent.filter(({ topic }) => topic === 'events');
    expect(errors).toMatchObject([{ key: 'dc_1', headers: { ce_type: '$errors' } }]);
    expect(JSON.parse(String(errors[0]?.value))).toMatchObject({
      error: { code: 'MalformedEvent', message: expect.stringMatching(/not JSON/) },
      original_event: '{',
      original_context: { source_id: 'dc_1', workflow_id: null, owner_id: OWNER },
    });
  });

  it('a malformed event goes to the dead-letter topic, whether or not its owner can be looked up; the report waits for the owner', async () => {
    catalogIsAway = true;
    unknown.add('p_9');
    const [deadLetter, report, ...others] = (await router.plan([record('dc_1', '{'), record('p_9', '{')])).flat();
    await run([[deadLetter!]]);
    await expect(report!.run(() => {})).rejects.toThrow('the catalog is down');
    expect(sent.map(({ topic }) => topic)).toEqual(['routing.dead-letter', 'routing.dead-letter']);
    catalogIsAway = false;
    await run([[report!, ...others]]);
    const errors = sent.filter(({ topic }) => topic === 'events').map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);
    expect(errors).toMatchObject([{ original_context: { owner_id: OWNER } }, { original_context: { workflow_id: 'p_9' } }]);
    // a workflow that is not registered yet
    expect(errors[1]).not.toHaveProperty('original_context.owner_id');
    expect(lookedUp).toEqual([['dc_1']]);
  });

  it('without looking up an owner when it is well-formed', async () => {
    listeners.dc_1 = ['wh_1'];
    await run(await router.plan([record('dc_1', '1')]));
    expect(lookedUp).toEqual([]);
  });

  it('also as a fact when it is an error', async () => {
    listeners.p_1 = [];
    await run(await router.plan([record('p_1', '{"error":{"code":"E"}}', { ce_type: '$errors' })]));
    expect(payload('routing.error.raised')).toEqual([expect.objectContaining({ owner_id: OWNER, subject_id: 'p_1', code: 'E' })]);
  });
});

describe('past 16 hops an event', () => {
  it('goes to webhooks and triggers nothing, which $errors reports once', async () => {
    listeners.dc_1 = ['wh_1', 'dc_2', 'p_3'];
    await run(await router.plan([record('dc_1', '1', { ce_hops: '17' })]));
    expect(attempted).toEqual(['1 to wh_1']);
    expect(sent.map(({ topic, key }) => [topic, key])).toEqual([['events', 'dc_1']]);
    const report = sent[0] as OutgoingRecord;
    [sent, attempted] = [[], []];
    await run(await router.plan([record('dc_1', String(report.value), report.headers)]));
    expect(attempted).toHaveLength(1);
    expect(sent.map(({ topic }) => topic)).toEqual(['routing.error.raised']);
  });

  it('does not count as a loop if nothing would be triggered', async () => {
    listeners.dc_1 = ['wh_1'];
    await run(await router.plan([record('dc_1', '1', { ce_hops: '99' })]));
    expect(sent).toEqual([]);
  });
});

describe('an event whose cause has become too many events and runs', () => {
  const wide = (root: string) => record('dc_1', '1', { ce_hops: '3', ce_sluiceroot: root, ce_sluicespread: '6000' });

  it('goes to webhooks and triggers nothing, which $errors reports once for each cause', async () => {
    listeners.dc_1 = ['wh_1', 'dc_2', 'p_3'];
    await run(await router.plan([wide('a'), wide('a'), wide('a'), wide('b')]));
    expect(attempted).toHaveLength(4);
    const { headers } = sent[0] as OutgoingRecord;
    expect(sent.map(({ topic, key }) => [topic, key])).toEqual([
      ['events', 'dc_1'],
      ['events', 'dc_1'],
    ]);
    expect(headers).toMatchObject({ ce_type: '$errors', ce_sluiceroot: 'a' });
  });

  it('triggers nothing after 160 000 runs of its cause in its account, whatever its own spread', async () => {
    listeners.dc_1 = Array.from({ length: 10_000 }, (_, n): ListenerId => `dc_${n + 2}`);
    const narrow = (root: string) => record('dc_1', '1', { ce_hops: '3', ce_sluiceroot: root, ce_sluicespread: '1' });
    const topicsOf = async (root: string) => {
      sent = [];
      await run(await router.plan([narrow(root)]));
      return new Set(sent.map(({ topic }) => topic));
    };
    for (let n = 0; n < 16; n++) expect(await topicsOf('d')).toEqual(new Set(['runtime.run.execute']));
    expect(await topicsOf('d')).toEqual(new Set(['events']));
    expect(JSON.parse(String(sent[0]?.value))).toMatchObject({ error: { code: 'LoopDetected' } });
    expect(await topicsOf('e')).toEqual(new Set(['runtime.run.execute']));
    owners.dc_1 = 'u_other';
    expect(await topicsOf('d')).toEqual(new Set(['runtime.run.execute']));
  });

  it('triggers those that are few enough', async () => {
    listeners.dc_1 = ['dc_2'];
    await run(await router.plan([wide('c')]));
    expect(payload('runtime.run.execute')).toMatchObject([{ cause: { root: 'c', spread: 6000 } }]);
  });
});

describe('a producer of malformed records', () => {
  it('costs two requests for a batch, and is reported 100 times a minute', async () => {
    listeners.dc_1 = [];
    await run(await router.plan(Array.from({ length: 150 }, () => record('dc_1', '{'))));
    expect(requests).toEqual([150, 100]);
    expect(sent.filter(({ topic }) => topic === 'routing.dead-letter')).toHaveLength(150);
    const reports = sent.filter(({ topic }) => topic === 'events').map(({ value }) => String(value));
    expect(reports).toHaveLength(100);
    expect(reports.map((report) => report.includes('more malformed records follow')).indexOf(true)).toBe(99);
    await run(await router.plan([record('dc_2', '{')]));
    expect(sent.at(-1)).toMatchObject({ topic: 'events', key: 'dc_2' });
  });

  it('is logged 100 times a minute, whatever the keys of its records', async () => {
    const warn = jest.spyOn(log, 'warn');
    await router.plan(Array.from({ length: 150 }, (_, n) => record(`dc_${n}`, '{')));
    expect(warn).toHaveBeenCalledTimes(100);
  });
});

describe('events with very many listeners', () => {
  it('are planned a few at a time, but one at least', async () => {
    listeners.dc_1 = Array.from({ length: 2400 }, (_, n): ListenerId => `wh_${n}`);
    listeners.dc_2 = Array.from({ length: 7000 }, (_, n): ListenerId => `wh_${n}`);
    const plan = async (...keys: string[]) => (await router.plan(keys.map((key) => record(key, '1')))).map(({ length }) => length);
    expect(await plan('dc_1', 'dc_1', 'dc_1', 'dc_1')).toEqual([2400, 2400]);
    expect(await plan('dc_2', 'dc_1')).toEqual([7000]);
    listeners.dc_3 = Array.from({ length: 30 }, (_, n): ListenerId => `dc_${n + 4}`);
    const large = JSON.stringify('x'.repeat(500_000));
    expect(await router.plan([record('dc_3', '1'), record('dc_3', large), record('dc_3', large)])).toHaveLength(2);
    mostMatches = 1;
    expect(await plan('x', 'dc_1', 'x', 'dc_1')).toEqual([1, 2400, 1]);
  });
});

describe('what goes to Kafka', () => {
  it('is sent in one lane of its account, whatever the partition, and together with what waits behind it', async () => {
    listeners.dc_1 = ['p_1'];
    const plans = [...(await router.plan([record('dc_1', '1')])), ...(await router.plan([record('dc_1', '2'), record('dc_1', '3')]))];
    expect(new Set(plans.flat().map(({ lane }) => lane))).toEqual(new Set(['triggers u_1']));
    plans[1]![0]!.isOwn = () => false;
    plans[2]![0]!.drop?.();
    await plans[0]![0]!.run(() => {});
    expect(sent.map(({ value }) => String(value))).toEqual(['1']);
    await plans[1]![0]!.run(() => {});
    expect(sent.map(({ value }) => String(value))).toEqual(['1', '2']);
  });

  it('is sent once for a batch, in order, and again after Kafka was down', async () => {
    listeners.dc_1 = ['p_1'];
    const plans = await router.plan([record('dc_1', '1'), record('dc_1', '2'), record('dc_1', '3')]);
    const lanes = new Set(plans.flat().map(({ lane }) => lane));
    expect(lanes.size).toBe(1);
    kafkaIsAway = true;
    await expect(plans[0]?.[0]?.run(() => {})).rejects.toThrow('Kafka is down');
    kafkaIsAway = false;
    await run(plans);
    expect(sent.map(({ value }) => String(value))).toEqual(['1', '2', '3']);
  });
});

describe('an event of an unknown emitter', () => {
  it('waits for the catalog, and those that follow it wait behind it', async () => {
    listeners.dc_1 = ['wh_1'];
    listeners.dc_2 = ['wh_1'];
    unknown.add('dc_1');
    const first = await router.plan([record('dc_1', '1'), record('dc_2', '2'), record('dc_1', '3')]);
    unknown.delete('dc_1');
    const second = await router.plan([record('dc_1', '4')]);
    expect([...first, ...second].map((tasks) => tasks.map(({ lane }) => lane))).toEqual([
      ['unknown-emitter dc_1'],
      ['wh_1 dc_2'],
      ['unknown-emitter dc_1'],
      ['unknown-emitter dc_1'],
    ]);
    await run([...first, ...second]);
    expect(attempted.filter((each) => !each.startsWith('2'))).toEqual(['1 to wh_1', '3 to wh_1', '4 to wh_1']);
    expect(introduced).toEqual([['dc_1', 'dc_1']]);
    expect((await router.plan([record('dc_1', '5')])).flat().map(({ lane }) => lane)).toEqual(['wh_1 dc_1']);
  });

  it('waits in the database, also if its workflow was removed, while many others wait for the catalog', async () => {
    isRemoved = (id) => id === 'p_1';
    [listeners.dc_known, listeners.dc_new] = [['wh_1'], ['wh_2']];
    unknown.add('dc_new');
    const first = await router.plan(Array.from({ length: 501 }, (_, n) => record(`dc_${n}`, String(n))));
    expect(first.map(({ length }) => length)).toEqual([...Array.from({ length: 500 }, () => 1), 0]);
    const keys = ['p_1', 'dc_7', 'dc_known', 'dc_new'];
    const second = await router.plan(keys.map((key, n) => record(key, String(1001 + n))));
    expect([second.map(({ length }) => length), stored]).toEqual([
      [0, 0, 1, 0],
      ['500', '1001', '1002', '1004'],
    ]);
    await run([...first, ...second]);
    // there is capacity again
    expect((await router.plan([record('dc_501', '501')])).flat()).toHaveLength(1);
    expect(attempted).toEqual(['1003 to wh_1']);
  });

  it('waits in the database while few, but large ones wait for the catalog', async () => {
    const large = JSON.stringify('x'.repeat(900_000));
    const plans = await router.plan(Array.from({ length: 12 }, (_, n) => record(`dc_${n}`, large)));
    expect(plans.map(({ length }) => length)).toEqual([...Array.from({ length: 10 }, () => 1), 0, 0]);
    expect(stored).toHaveLength(2);
  });

  it('follows earlier ones of its emitter into the database, also when the emitter is known meanwhile, until they have moved', async () => {
    [listeners.dc_1, listeners.dc_2, waiting] = [['wh_1'], ['wh_2'], new Set(['dc_1', 'dc_3'])];
    isPostponed = ({ emitterId }) => emitterId !== 'dc_2';
    const events = [record('dc_1', '1'), record('dc_2', '2'), record('dc_3', '3'), record('dc_1', '4', { ce_type: 'x' })];
    await run(await router.plan(events));
    waiting.clear();
    await run(await router.plan([record('dc_1', '5')]));
    expect({ stored, added, attempted }).toEqual({ stored: ['1', '3', '4'], added: ['5'], attempted: ['2 to wh_2'] });
  });

  it('waits in memory before later ones of its emitter that are stored or postponed', async () => {
    listeners.dc_1 = ['wh_1'];
    unknown.add('dc_1');
    const first = await router.plan([record('dc_1', '1')]);
    await router.plan(Array.from({ length: 500 }, (_, n) => record(`dc_many${n}`, '0')));
    stored = [];
    // its fact arrives; the catalog has not replied
    unknown.delete('dc_1');
    expect((await router.plan([record('dc_1', '2')])).flat()).toEqual([]);
    waiting.clear();
    isPostponed = () => true;
    expect((await router.plan([record('dc_1', '3')])).flat()).toEqual([]);
    await run(first);
    expect({ stored, added, attempted }).toEqual({ stored: ['2', '3'], added: [], attempted: ['1 to wh_1'] });
  });

  it('stays in the log, with those behind it, while the database has too many', async () => {
    [listeners.dc_1, waiting, isFull] = [['wh_1'], new Set(['dc_2']), true];
    const records = [record('dc_1', '1'), record('dc_2', '2'), record('dc_1', '3')];
    const plans = await router.plan(records);
    await run(plans);
    expect([plans.length, attempted]).toEqual([1, ['1 to wh_1']]);
    await expect(router.plan(records.slice(1))).rejects.toThrow('too many');
    isFull = false;
    await run(await router.plan(records.slice(1)));
    expect([stored, attempted]).toEqual([['2'], ['1 to wh_1', '3 to wh_1']]);
  });

  it('is looked up separately if its emitter is a workflow, which the catalog may have to read first', async () => {
    for (const id of ['p_1', 'dc_1', 'p_2']) unknown.add(id);
    await run(await router.plan([record('p_1', '1'), record('dc_1', '2'), record('p_2', '3')]));
    expect(introduced.sort()).toEqual([['dc_1'], ['p_1', 'p_2']]);
  });

  it('leaves deliveries in progress for other accounts', async () => {
    const begun = new Map<string, number>();
    dispatcher.firstAttempt = ({ webhookId }: Delivery, _: number, tenant: UserId): Task => ({
      ...{ lane: webhookId, group: webhookId, tenant },
      run: () => {
        begun.set(tenant, (begun.get(tenant) ?? 0) + 1);
        return new Promise(() => {});
      },
    });
    [listeners.dc_1, listeners.dc_2] = [Array.from({ length: 60 }, (_, n): ListenerId => `wh_${n}`), ['wh_other']];
    owners.dc_2 = 'u_2';
    for (const id of ['dc_1', 'dc_2']) unknown.add(id);
    void run(await router.plan([record('dc_1', '1')]));
    void run(await router.plan([record('dc_2', '1')]));
    await new Promise((resolve) => setImmediate(resolve));
    expect(Object.fromEntries(begun)).toEqual({ [OWNER]: 48, u_2: 1 });
  });

  it('is looked up again after the catalog was down', async () => {
    listeners.dc_1 = ['wh_1'];
    unknown.add('dc_1');
    const plans = await router.plan([record('dc_1', '1')]);
    catalogIsAway = true;
    await expect(plans[0]?.[0]?.run(() => {})).rejects.toThrow('the catalog is down');
    catalogIsAway = false;
    await run(plans);
    expect(attempted).toEqual(['1 to wh_1']);
  });

  it('is let go when nobody knows it', async () => {
    const plans = await router.plan([record('dc_9', '1')]);
    await run(plans);
    expect([attempted, sent]).toEqual([[], []]);
  });
});
