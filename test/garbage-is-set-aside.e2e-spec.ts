import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type kafkajs from 'kafkajs';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  deadLetterTopic,
  emitterChanged,
  EVENTS_TOPIC,
  repliesTopic,
  type Service,
  SERVICES,
  topicAccess,
} from '../libs/contracts/src/index.js';
// dead letters are compressed with zstd, for which kafkajs has no codec
import '../libs/messaging/src/kafka.js';
import { announce, dataFolder } from '../scripts/launch/data-folder.mjs';
import { writePidFile } from '../scripts/processes/pid-file.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import type { Api } from './support/api.js';
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
    await eventually(
      () => {
        const found = setAside.filter((each) => each.service === service && each.topic === topic);
        expect([...new Set(found.map(({ name }) => name))].sort()).toEqual([...expected].sort());
        expect(found.every(({ reason }) => reason !== '')).toBe(true);
      },
      { withinMs: 30_000 },
    );
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

it("is counted by an operator's command", async () => {
  const env = { ...process.env, DATABASE_URL: 'postgres://nowhere', KAFKA_BROKERS: system.brokers };
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
  const { stdout: table } = await run('--since', '1h');
  expect(table).toMatch(/^COUNT +SERVICE +TOPIC +LAST +REASON\n/);
  expect(table).toMatch(/\d+ +event-store +events +\S+ +the deletion is not signed/);
});

needing('control', 'processes').it('is counted by doctor in a clone that runs the instance', async () => {
  const folder = dataFolder(mkdtempSync(join(tmpdir(), 'sluice-doctor-')));
  writePidFile(folder.lock, process.pid);
  const addresses = { url: new URL(api.baseUrl).origin, kafka: system.brokers };
  announce(folder, { DATABASE_URL: 'postgres://nowhere', KAFKA_BROKERS: system.brokers }, addresses);
  writeFileSync(folder.apiKey, api.account.api_key);
  const none = { SLUICE_URL: undefined, SLUICE_API_KEY: undefined };
  const env = { ...process.env, ...none, SLUICE_DATA_DIR: folder.dir, XDG_CONFIG_HOME: folder.dir };
  try {
    const { stdout } = await promisify(execFile)(node24(), [inRoot('scripts/sluice.mjs'), 'doctor', '-o', 'json'], { env });
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

  it('is handled within a second, ignoring fields that a later version adds', async () => {
    const emitter = await api.source("export default { name: 'Emitter' };");
    const listener = await api.source("export default { name: 'Listener', run(e) { this.$emit({ received: e }); } };");
    await api.subscribe(emitter.id, listener.id);
    const run = { run_id: randomUUID(), owner_id: api.account.id, source_id: listener.id, trigger: 'manual', due_at_ms: Date.now() };
    await producer.send({
      topic: 'runtime.run.execute',
      messages: [
        { key: api.account.id, value: '{' },
        { key: api.account.id, value: JSON.stringify({ ...run, event: '"direct"', of_a_later_version: { x: 1 } }) },
      ],
    });
    await producer.send({
      topic: 'events',
      messages: [
        { key: emitter.id, value: '{' },
        { key: emitter.id, value: '"routed"' },
      ],
    });
    await eventually(async () => {
      const { body } = await api.get(`/sources/${listener.id}/event_summaries`);
      expect(body.data.map(({ event }: any) => event.received).sort()).toEqual(['direct', 'routed']);
    });
  });
});
