import { beforeEach, describe, expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import type { EmitterId, ListenerId } from '#contracts';
import type { EmittedEvent } from '#events';
import { LogRecord, type OutgoingRecord, type Publisher, type Task } from '#messaging';
import { createLog } from '#observability';
import type { Stats } from '#stats';
import type { Delivery } from '../deliveries/delivery.js';
import type { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { CONFIG } from '../deliveries/simulation/replica-for-tests.js';
import type { Match, MatchRepository } from './match.repository.js';
import { Router } from './router.js';

const OWNER = 'u_1';
let sent: OutgoingRecord[];
let attempted: string[];
/** The emitters of the events that were counted. */
let counted: EmitterId[];
/** The listeners of an emitter. */
let listeners: Record<string, ListenerId[]>;
/** Emitters that only the catalog knows. */
let unknown: Set<string>;
let introduced: string[][];
let kafkaIsAway: boolean;
let catalogIsAway: boolean;
let router: Router;

const match = (event: EmittedEvent): Match | undefined =>
  listeners[event.emitterId] && {
    ownerId: OWNER,
    listeners: listeners[event.emitterId]?.map((id) => ({ id, version: id.startsWith('wh_') ? 1 : null })) ?? [],
  };

beforeEach(() => {
  [sent, attempted, counted, listeners, unknown, introduced, kafkaIsAway, catalogIsAway] = [[], [], [], {}, new Set(), [], false, false];
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      if (kafkaIsAway) throw new Error('Kafka is down');
      sent.push(...records);
    },
  } as unknown as Publisher;
  const matching = {
    match: async (events: EmittedEvent[]) => events.map((event) => (unknown.has(event.emitterId) ? undefined : match(event))),
    introduce: async (events: EmittedEvent[]) => {
      introduced.push(events.map(({ emitterId }) => emitterId));
      if (catalogIsAway) throw new Error('the catalog is down');
      for (const { emitterId } of events) unknown.delete(emitterId);
      return events.map(match);
    },
  } as unknown as MatchRepository;
  const dispatcher = {
    firstAttempt: ({ webhookId, emitterId, json }: Delivery): Task => ({
      lane: `${webhookId} ${emitterId}`,
      run: async () => void attempted.push(`${json.toString()} to ${webhookId}`),
    }),
  } as unknown as Dispatcher;
  const stats = { countEvent: (id: EmitterId) => void counted.push(id) } as unknown as Stats;
  router = new Router(createLog('test', 'silent'), publisher, matching, dispatcher, CONFIG, stats);
});

let offset = 0;
const record = (key: string, json: string, headers: Record<string, string> = {}): LogRecord =>
  new LogRecord(
    'events',
    3,
    { offset: String((offset += 1)), key: Buffer.from(key), value: Buffer.from(json), headers } as unknown as KafkaMessage,
    1_700_000_000_000,
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

describe('an event is counted', () => {
  it('for its emitter once, with or without listeners, unless it is an error or a log', async () => {
    [listeners.dc_1, listeners.dc_2] = [['wh_1', 'wh_2', 'dc_2'], []];
    const streams = ['default', 'x', '$errors', '$logs'].map((ce_type) => record('dc_1', '{}', { ce_type }));
    await run(await router.plan([...streams, record('dc_2', '1'), record('dc_unknown', '1')]));
    expect(counted).toEqual(['dc_1', 'dc_1', 'dc_2']);
  });
});

describe('an event goes', () => {
  it('to webhooks by the dispatcher, to sources as runs, to workflows as triggers', async () => {
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
        ce_hops: '2',
        ce_sluiceroot: 'emit',
        ce_sluicespread: '2',
        ce_eventid: `1700000000000-${offset * 4096 + 3}`,
      },
    });
    expect(String(trigger?.value)).toBe('{"a":1}');
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

  it('nowhere when nobody listens, when it waits, when it is a deletion', async () => {
    listeners.dc_1 = [];
    listeners.dc_2 = ['wh_1'];
    const plans = await router.plan([
      record('dc_1', '1'),
      record('dc_2', '1', { ce_type: '$in', ce_sluicedueat: '5' }),
      record('dc_2', '{}', { ce_type: '$delete' }),
    ]);
    expect(plans).toEqual([[], [], []]);
  });

  it('to the dead-letter topic when it is none', async () => {
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
      original_context: { source_id: 'dc_1', workflow_id: null },
    });
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

  it('triggers those that are few enough', async () => {
    listeners.dc_1 = ['dc_2'];
    await run(await router.plan([wide('c')]));
    expect(payload('runtime.run.execute')).toMatchObject([{ cause: { root: 'c', spread: 6000 } }]);
  });
});

describe('what goes to Kafka', () => {
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
