import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type kafkajs from 'kafkajs';
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  deadLetterTopic,
  type EmitterState,
  emitterChanged,
  type ErrorRaised,
  errorRaised,
  EVENTS_TOPIC,
  executeRun,
  newId,
  repliesTopic,
  requestsTopic,
  restoreRun,
  type RunChanges,
  type RunFinished,
  runFinished,
  type RunRequest,
  type Service,
  SERVICES,
  topicAccess,
  type UserId,
  WORKFLOWS_TOPIC,
} from '../libs/contracts/src/index.js';
// dead letters are compressed with zstd, for which kafkajs has no codec
import '../libs/messaging/src/kafka.js';
import { announce, dataFolder } from '../scripts/launch/data-folder.mjs';
import { writePidFile } from '../scripts/pid-files/pid-file.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

/** Records that anyone with access to Kafka may write by mistake, in the name of some emitter; one is not JSON. */
const GARBAGE: [string, Buffer | null][] = [
  ['no JSON', Buffer.from('{')],
  ['bytes', Buffer.from([0xff, 0x00, 0xfe])],
  ['NUL', Buffer.from('\0')],
  ['another shape', Buffer.from('{"unexpected":[1,2,3]}')],
  ['an array', Buffer.from('[]')],
  ['nothing', Buffer.alloc(0)],
  ['1 MiB', Buffer.from(JSON.stringify('x'.repeat(1024 * 1024)))],
  ['10 000 levels', Buffer.from('['.repeat(10_000) + ']'.repeat(10_000))],
];
/** Any JSON is an event, so only these are malformed events. */
const NO_EVENTS = ['no JSON', 'bytes', 'NUL', 'nothing', '1 MiB', '10 000 levels'];
/**
 * A process reads the replies to all processes of its service and takes only its own. The gateway reads events for live streams while
 * clients are connected; the services that process events copy malformed ones to the dead-letter topic. The catalog reads its facts about emitters only after
 * a restore of its database.
 */
const isExempt = (service: Service, topic: string): boolean =>
  topic === repliesTopic(service) ||
  (service === 'gateway' && topic === EVENTS_TOPIC) ||
  (service === 'catalog' && topic === emitterChanged.topic);

// not in an instance that others use
const { describe } = needing('control');

let system: System;
let api: Api;
let kafka: kafkajs.Kafka;
let producer: kafkajs.Producer;
let consumer: kafkajs.Consumer;
const setAside: { service: string; topic: string; reason: string; name: string }[] = [];

beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
  kafka = outsideKafka(system.brokers);
  [producer, consumer] = [kafka.producer(), kafka.consumer({ groupId: `test.${randomUUID()}` })];
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topics: SERVICES.map(deadLetterTopic), fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ topic, message }) => {
      const header = (name: string) => message.headers?.[name]?.toString() ?? '';
      const [service, name] = [topic.replace(/\.dead-letter$/, ''), header('garbage')];
      // other stories on the same instance have dead letters, too
      if (name !== '') setAside.push({ service, topic: header('dead-letter-topic'), reason: header('dead-letter-reason'), name });
    },
  });
});
afterAll(async () => {
  await Promise.all([producer?.disconnect(), consumer?.disconnect()]);
  await system?.stop();
});

const topicsRead = SERVICES.flatMap((service) =>
  topicAccess(service)
    .reads.filter((topic) => !isExempt(service, topic))
    .map((topic): [Service, string] => [service, topic]),
);

describe('a record that does not belong on its topic', () => {
  it('is written to every topic that a service reads', async () => {
    for (const topic of new Set(topicsRead.map(([, topic]) => topic)))
      await producer.send({ topic, messages: GARBAGE.map(([name, value]) => ({ key: 'dc_nobody', value, headers: { garbage: name } })) });
  });

  it.each(topicsRead)('becomes, for %s, a dead letter of %s with its reason', async (service, topic) => {
    const expected = topic === 'events' ? NO_EVENTS : GARBAGE.map(([name]) => name);
    await eventually(() => {
      const found = setAside.filter((each) => each.service === service && each.topic === topic);
      expect([...new Set(found.map(({ name }) => name))].sort()).toEqual([...expected].sort());
      expect(found.every(({ reason }) => reason !== '')).toBe(true);
    });
  });
});

describe('what Kafka accepts from any producer', () => {
  const bytes = Buffer.alloc(1_500_000, 0xff);

  it.each<[string, kafkajs.Message[]]>([
    [
      'a record with 20 000 headers',
      [{ value: '{', headers: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`h${i}`, ''])) }],
    ],
    ['a key of bytes that are not text', [{ key: bytes, value: '{' }]],
    ['a header of bytes that are not text', [{ value: '{', headers: { long: bytes } }]],
  ])('does not stop the readers of events: %s', async (_, messages) => {
    const source = await api.source("export default { name: 'Neighbour' };");
    const send = (messages: kafkajs.Message[]) => producer.send({ topic: EVENTS_TOPIC, messages });
    const [{ partition }] = (await send([{ key: source.id, value: '"before"' }])) as [kafkajs.RecordMetadata];
    await send(messages.map((message) => ({ ...message, partition })));
    await send([{ key: source.id, value: '"behind"' }]);
    await eventually(async () => {
      const { body } = await api.get(`/sources/${source.id}/event_summaries`);
      expect(body.data.map(({ event }: any) => event)).toEqual(['behind', 'before']);
    });
  });
});

describe('a deletion of events that another producer writes', () => {
  it('deletes nothing and becomes a dead letter of each service that reads events, and one over REST deletes', async () => {
    const source = await api.source("export default { name: 'Kept' };");
    const summaries = async () => (await api.get(`/sources/${source.id}/event_summaries`)).body.data.map(({ event }: any) => event);
    const name = `deletion of ${source.id}`;
    await producer.send({
      topic: EVENTS_TOPIC,
      messages: [
        { key: source.id, value: '"kept"' },
        { key: source.id, value: '{}', headers: { ce_type: '$delete', garbage: name } },
        { key: source.id, value: '"behind"' },
      ],
    });
    await eventually(async () => expect(await summaries()).toEqual(['behind', 'kept']));
    await eventually(() => {
      const found = setAside.filter((each) => each.name === name);
      expect(found.map(({ service }) => service).sort()).toEqual(['event-store', 'routing']);
      expect(found.every(({ topic, reason }) => topic === EVENTS_TOPIC && reason.includes('not signed'))).toBe(true);
    });
    expect((await api.delete(`/sources/${source.id}/events`)).status).toBe(202);
    await eventually(async () => expect(await summaries()).toEqual([]));
  });
});

it("the dead letters are counted by an operator's command", async () => {
  const env = { ...process.env, DATABASE_URL: 'postgres://nowhere', ...system.kafkaVariables };
  const run = (...args: string[]) =>
    promisify(execFile)(node24(), [inRoot('scripts/sluice.mjs'), 'admin', 'dead-letters', ...args], { env, maxBuffer: 2 ** 27 });
  const { stdout } = await run('--service', 'routing', '--since', '1h', '-n', '1000', '-o', 'ndjson');
  const records = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(records).toContainEqual(
    expect.objectContaining({
      service: 'routing',
      topic: EVENTS_TOPIC,
      key: 'dc_nobody',
      reason: expect.stringMatching(/^the value is not JSON/),
      value: '{',
    }),
  );
  const { stdout: table } = await run('--since', '1969-12-31');
  expect(table).toMatch(/^COUNT +SERVICE +TOPIC +LAST +REASON\n/);
  expect(table).toMatch(/\d+ +event-store +events +\S+ +the deletion is not signed/);
});

needing('control', 'processes').it('the dead letters are counted by doctor in a clone that runs the instance', async () => {
  const folder = dataFolder(mkdtempSync(join(tmpdir(), 'sluice-doctor-')));
  writePidFile(folder.lock, process.pid);
  const addresses = { url: new URL(api.baseUrl).origin, kafka: system.brokers };
  announce(folder, { DATABASE_URL: 'postgres://nowhere', ...system.kafkaVariables }, addresses);
  writeFileSync(folder.apiKey, api.account.api_key);
  const none = { SLUICE_URL: undefined, SLUICE_API_KEY: undefined };
  const env = { ...process.env, ...none, SLUICE_DATA_DIR: folder.dir, XDG_CONFIG_HOME: folder.dir };
  try {
    const doctor = promisify(execFile)(node24(), [inRoot('scripts/sluice.mjs'), 'doctor', '-o', 'json'], { env });
    // fails if another check does, such as one of the time that an event takes
    const { stdout } = await doctor.catch((failure: { stdout: string }) => failure);
    expect(JSON.parse(stdout)).toContainEqual({
      ...{ check: 'dead letters', ok: true, warning: true },
      detail: expect.stringMatching(/^in the last 24 h .*\d+ of events in routing.*; sluice dead-letters lists them/),
    });
  } finally {
    rmSync(folder.dir, { recursive: true });
  }
});

describe('a valid record behind it', () => {
  it('is handled: sources are created and run, and their events are stored and counted', async () => {
    const source = await api.source("export default { name: 'Behind', run(e) { this.$emit(e); throw new Error('after the emit'); } };");
    expect((await api.post(`/sources/${source.id}/run`, { event: { n: 1 } })).status).toBe(202);
    await eventually(async () => {
      const { body } = await api.get(`/sources/${source.id}/event_summaries`);
      expect(body.data.map(({ event }: any) => event)).toEqual([{ n: 1 }]);
    });
    await eventually(async () => expect((await api.get('/users/me')).body.data.daily_invocations_used).toBe(1));
  });
});

/** A record that belongs on its topic, records that resemble it, and how each service shows that it has handled the first one. */
interface Sample {
  key: string;
  headers?: Record<string, string>;
  value: object;
  /** Fields that make it invalid, one at a time; undefined omits a field. */
  wrong?: Record<string, unknown[]>;
  /** Wrong values are reported in the reply, not by a dead letter. */
  replies?: boolean;
  handled: Partial<Record<Service, () => Promise<void>>>;
}

const ECHO = "export default { name: 'Echo', props: { http: '$.interface.http' }, run(e) { this.$emit({ received: e.body ?? e }); } };";
/** A field of a later version, which this version ignores. */
const LATER = { of_a_later_version: { x: 1 } };
/** A value that is cut off, and copies with one wrong field each; by name. */
const wrongValues = (value: object, wrong: Record<string, unknown[]>): [name: string, text: string][] => [
  ['cut off', JSON.stringify(value).slice(0, -1)],
  ...Object.entries(wrong).flatMap(([field, values]) =>
    values.map((bad, nth): [string, string] => [`${field} ${nth}`, JSON.stringify({ ...value, [field]: bad })]),
  ),
];
/** The time limit for a record that waits behind others: well below the 15 seconds of a story, and enough for a busy machine. */
const SOON = { withinMs: 5000 };

describe('a valid record of a later version', () => {
  const samples = new Map<string, Sample>();
  const replies = new Map<string, { error?: string }>();
  const sent = new Map<string, { partition: number; offset: string }>();
  let replyConsumer: kafkajs.Consumer;
  let admin: kafkajs.Admin;

  const events = async (id: string): Promise<unknown[]> =>
    (await api.get(`/sources/${id}/event_summaries`)).body.data?.map(({ event }: any) => event) ?? [];

  /** A request to a service, and the reply that shows that it was handled. */
  const request = (service: Service, message: string, value: object, wrong?: Sample['wrong']): Sample => {
    const id = randomUUID();
    return {
      ...{ key: id, value, wrong, replies: true },
      // a service may only reply to those that send requests to it
      headers: { message, 'correlation-id': id, 'reply-to': repliesTopic(service === 'gateway' ? 'catalog' : 'gateway') },
      handled: { [service]: async () => expect(replies.get(id)).toEqual({ error: undefined }) },
    };
  };

  beforeAll(async () => {
    [replyConsumer, admin] = [kafka.consumer({ groupId: `test.${randomUUID()}` }), kafka.admin()];
    await Promise.all([replyConsumer.connect(), admin.connect()]);
    await replyConsumer.subscribe({ topics: [repliesTopic('gateway'), repliesTopic('catalog')] });
    const joined = new Promise((resolve) => replyConsumer.on(replyConsumer.events.GROUP_JOIN, resolve));
    await replyConsumer.run({
      eachMessage: async ({ message: { headers = {} } }) =>
        void replies.set(String(headers['correlation-id']), { error: headers.error?.toString() }),
    });
    await joined;

    const [listener, other] = [await api.source(ECHO), await system.account()];
    const [owner_id, other_id] = [api.account.id, other.account.id] as UserId[] as [UserId, UserId];
    const emitter = await api.source("export default { name: 'Emitter' };");
    await api.subscribe(emitter.id, listener.id);
    const [workflow, unknown, endpoint_key] = [newId('workflow'), newId('source'), randomUUID().replaceAll('-', '')];
    const endpointUrl = listener.configured_props.http.endpoint_url as string;

    samples.set(executeRun.topic, {
      key: owner_id,
      value: {
        run_id: randomUUID(),
        owner_id,
        source_id: listener.id,
        trigger: 'manual',
        event: '"direct"',
        due_at_ms: Date.now(),
      } satisfies RunRequest,
      wrong: {
        run_id: [undefined, 1, null],
        owner_id: [undefined, 'dc_1'],
        source_id: [undefined, owner_id],
        trigger: [undefined, 'moon', 'constructor'],
        event: [{}, ['"direct"']],
        due_at_ms: [undefined, 'now', 1.5],
        hops: ['many', {}],
        cause: ['x'],
        hook: ['deploy'],
        retry: [2],
      },
      handled: { runtime: async () => expect(await events(listener.id)).toContainEqual({ received: 'direct' }) },
    });
    samples.set(restoreRun.topic, {
      key: owner_id,
      value: {
        run_id: randomUUID(),
        owner_id,
        source_id: emitter.id,
        db: [{ key: 'kept', value: '1' }],
        waiting: [{ emit_id: randomUUID(), due_at_ms: Date.now() - 1000, nth: 0, headers: {}, value: '"restored"' }],
      } satisfies RunChanges,
      wrong: {
        run_id: [undefined, 1],
        owner_id: [undefined, 'dc_1'],
        source_id: [undefined, owner_id],
        part: ['first', 1.5],
        db: [undefined, {}, [['kept', '1']], [{ key: 1, value: '1' }], [{ key: 'kept', value: 1 }]],
        dedupe: ['last'],
        waiting: [undefined, {}, [1], [{ emit_id: 'e', due_at_ms: 'now', nth: 0, headers: {}, value: '1' }]],
      },
      handled: { runtime: async () => expect(await events(emitter.id)).toContain('restored') },
    });
    samples.set(runFinished.topic, {
      key: other_id,
      value: {
        run_id: randomUUID(),
        owner_id: other_id,
        source_id: emitter.id,
        status: 'succeeded',
        compute_ms: 7,
        finished_at_ms: Date.now(),
      } satisfies RunFinished,
      wrong: {
        run_id: [undefined, {}],
        owner_id: [undefined, emitter.id],
        source_id: [undefined],
        status: [undefined, {}],
        compute_ms: [undefined, 'long', 0.5],
        finished_at_ms: [undefined, '2026-01-01'],
      },
      handled: { gateway: async () => expect((await other.get('/users/me')).body.data.daily_invocations_used).toBe(1) },
    });
    samples.set(errorRaised.topic, {
      key: owner_id,
      value: {
        id: randomUUID(),
        owner_id: owner_id,
        subject_id: emitter.id,
        code: 'Garbage',
        message: 'from a story',
        raised_at_ms: Date.now(),
      } satisfies ErrorRaised,
      wrong: {
        id: [undefined, []],
        owner_id: [undefined, 'wh_1'],
        subject_id: [undefined, owner_id],
        code: [undefined, {}],
        message: [undefined, {}],
        event_id: [{}],
        raised_at_ms: [undefined, 'now'],
      },
      handled: {
        // without a mail server, only the position shows that the error was counted
        gateway: async () => {
          const { partition, offset } = sent.get(errorRaised.topic)!;
          const [{ partitions }] = (await admin.fetchOffsets({ groupId: 'gateway.error-mail', topics: [errorRaised.topic] })) as any;
          expect(Number(partitions.find((each: any) => each.partition === partition)?.offset)).toBeGreaterThan(Number(offset));
        },
      },
    });
    // an emitter that the catalog does not know, so that only this fact can be its origin
    samples.set(emitterChanged.topic, {
      key: unknown,
      value: {
        emitter_id: unknown,
        kind: 'source',
        owner_id: owner_id,
        active: true,
        deleted: false,
        version: 1,
        name: 'Unknown',
        created_at_ms: Date.now(),
        deployment: {
          code_hash: createHash('sha256').update(ECHO).digest('hex'),
          configured_props: {},
          schedules: {},
          hooks: [],
          endpoint_key,
          name_slug: 'unknown',
        },
      } satisfies EmitterState,
      wrong: {
        emitter_id: [undefined, owner_id],
        kind: [undefined, 'webhook'],
        owner_id: [undefined, unknown],
        active: [undefined, 'yes'],
        suspended: ['no'],
        deleted: [undefined, 'no'],
        version: [undefined, 'first', 1.5],
        name: [undefined, {}],
        created_at_ms: [undefined, 'now'],
        deployment: ['none'],
      },
      handled: {
        gateway: async () => expect((await api.post(`/sources/${unknown}/events`, ['published'])).status).toBe(202),
        'event-store': async () => expect((await api.get(`/sources/${unknown}/event_summaries`)).status).toBe(200),
        routing: async () => api.subscribe(unknown, listener.id),
        runtime: async () => {
          const url = endpointUrl.replace(/[^/]+$/, endpoint_key);
          expect((await http('POST', url, { body: '"endpoint"' })).status).toBe(200);
        },
      },
    });
    samples.set(WORKFLOWS_TOPIC, {
      key: workflow,
      value: { id: workflow, owner_id, name: 'Behind', active: true },
      wrong: {
        id: [newId('workflow'), null],
        owner_id: [undefined, 'dc_1', 5],
        name: [5, {}],
        active: ['yes', null],
      },
      handled: { catalog: async () => expect((await api.get(`/workflows/${workflow}/event_summaries`)).status).toBe(200) },
    });
    samples.set(EVENTS_TOPIC, {
      key: emitter.id,
      headers: { 'content-type': 'application/cloudevents+json' },
      value: {
        specversion: '1.0',
        id: randomUUID(),
        source: emitter.id,
        type: 'later',
        datalater: true,
        sluicestream: 'default',
        data: 'routed',
      },
      wrong: { id: ['x'.repeat(10_000)], sluicestream: ['$later', '*'] },
      handled: {
        'event-store': async () => expect(await events(emitter.id)).toContain('routed'),
        routing: async () => expect(await events(listener.id)).toContainEqual({ received: 'routed' }),
      },
    });
    const gone = {
      emitter_id: newId('source'),
      kind: 'source',
      owner_id,
      active: false,
      deleted: true,
      version: 1,
      name: '',
      created_at_ms: 1,
    };
    const requests: Record<Service, Sample> = {
      // a fact that the catalog announces
      gateway: request('gateway', emitterChanged.topic, gone, { kind: ['webhook'], deleted: [undefined, 'no'] }),
      catalog: request('catalog', 'catalog.emitter.find', { ids: [emitter.id] }, { ids: [undefined, emitter.id] }),
      routing: request('routing', 'routing.webhook.list', { owner_id, limit: 10 }, { owner_id: [undefined, 5], limit: ['all'] }),
      'event-store': request(
        'event-store',
        'event-store.stream.list',
        { owner_id, emitter_id: emitter.id },
        { emitter_id: [undefined, 5] },
      ),
      runtime: request('runtime', 'runtime.run.list', { owner_id, source_id: listener.id, limit: 10 }, { source_id: [undefined, '%'] }),
    };
    for (const service of SERVICES) samples.set(requestsTopic(service), requests[service]);
  });
  afterAll(async () => {
    const { key: workflow } = samples.get(WORKFLOWS_TOPIC) ?? {};
    const { key: unknown, value } = samples.get(emitterChanged.topic) ?? {};
    const end = JSON.stringify({ ...value, active: false, deleted: true, version: 2 });
    if (workflow) await producer.send({ topic: WORKFLOWS_TOPIC, messages: [{ key: workflow, value: null }] });
    if (unknown) await producer.send({ topic: emitterChanged.topic, messages: [{ key: unknown, value: end }] });
    await Promise.all([replyConsumer?.disconnect(), admin?.disconnect()]);
  });

  it('is sent behind records of the wrong shape to every topic that a service reads', async () => {
    expect([...samples.keys()].sort()).toEqual([...new Set(topicsRead.map(([, topic]) => topic))].sort());
    for (const [topic, { key, headers = {}, value, wrong = {}, replies: isRequest = false }] of samples) {
      const invalid = wrongValues(value, wrong).map(([name, text]): kafkajs.Message => {
        const own = isRequest ? { 'correlation-id': `${key} ${name}` } : { garbage: name };
        return { key, value: text, headers: { ...headers, ...own } };
      });
      const good = { key, value: JSON.stringify({ ...value, ...LATER }), headers };
      await producer.send({ topic, messages: invalid });
      const [{ partition, baseOffset }] = (await producer.send({ topic, messages: [good] })) as [kafkajs.RecordMetadata];
      sent.set(topic, { partition, offset: baseOffset! });
    }
  });

  it.each(topicsRead)('is handled by %s within seconds on %s', async (service, topic) => {
    const check = samples.get(topic)?.handled[service];
    if (!check) throw new Error(`no sample of ${topic} shows that ${service} handles it`);
    await eventually(check, SOON);
  });

  it.each(topicsRead)('follows records that %s refuses on %s', async (service, topic) => {
    const { key, value, wrong = {}, replies: isRequest } = samples.get(topic)!;
    const names = wrongValues(value, wrong).map(([name]) => name);
    await eventually(() => {
      if (isRequest)
        expect(names.map((name) => [name, replies.get(`${key} ${name}`)?.error])).toEqual(
          names.map((name) => [name, expect.stringContaining('"invalid"')]),
        );
      else {
        const found = setAside.filter((each) => each.service === service && each.topic === topic).map(({ name }) => name);
        expect(names.filter((name) => !found.includes(name))).toEqual([]);
      }
    });
  });
});
