import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import kafkajs, { type Producer, type Transaction } from 'kafkajs';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing, topic } from './support/target.js';

const CODE = "export default { name: 'silent' }";
/** More than a fetch of any service has room for beside other records. */
const LARGE = 'x'.repeat(1024 * 1024 - 2);

let system: System;
let receiver: Receiver;
let api: Api;
let producer: Producer;
let transactional: Producer;
let another: Producer;

beforeAll(async () => {
  [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  api = await system.account();
  const kafka = outsideKafka(system.brokers);
  const createPartitioner = kafkajs.Partitioners.DefaultPartitioner;
  producer = kafka.producer({ createPartitioner });
  [transactional, another] = [1, 2].map(() =>
    kafka.producer({ createPartitioner, transactionalId: randomUUID(), maxInFlightRequests: 1, idempotent: true }),
  ) as [Producer, Producer];
  await Promise.all([producer, transactional, another].map((each) => each.connect()));
});
afterAll(async () => {
  await Promise.all([producer, transactional, another].map((each) => each?.disconnect()));
  await Promise.all([system?.stop(), receiver?.close()]);
});

const record = (name: string, key: string, value: unknown) => ({ topic: topic(name), messages: [{ key, value: JSON.stringify(value) }] });

async function inTransaction(end: 'commit' | 'abort', work: (transaction: Transaction) => Promise<unknown>): Promise<void> {
  const transaction = await transactional.transaction();
  await work(transaction);
  await transaction[end]();
}

/** 300 records of 4 KB, whose transaction is aborted. */
const abortMany = (name: string, key: string) =>
  inTransaction('abort', async (transaction) => {
    const { messages, ...rest } = record(name, key, 'x'.repeat(4000));
    for (let n = 0; n < 30; n++) await transaction.send({ ...rest, messages: Array.from({ length: 10 }, () => messages[0]!) });
  });

needing('receiver').it.each<[string, (send: (value: unknown) => Promise<unknown>, source: string) => Promise<void>, unknown[]]>([
  [
    'a committed one, before a large event',
    async (send, source) => {
      await inTransaction('commit', (transaction) => transaction.send(record('events', source, 'in the transaction')));
      await send(LARGE);
    },
    ['in the transaction', LARGE],
  ],
  [
    'an aborted one, before a large event',
    async (send, source) => {
      await inTransaction('abort', (transaction) => transaction.send(record('events', source, 'aborted')));
      await send(LARGE);
    },
    [LARGE],
  ],
  [
    'two aborted ones that overlap',
    async (send, source) => {
      const [long, short] = await Promise.all([transactional.transaction(), another.transaction()]);
      for (const each of [long, short, long]) await each.send(record('events', source, 'aborted'));
      await send('between');
      await short.abort();
      await long.send(record('events', source, 'aborted'));
      await long.abort();
    },
    ['between'],
  ],
  ['a large aborted one', async (_, source) => abortMany('events', source), []],
  [
    'many aborted ones',
    async (_, source) => {
      for (let n = 0; n < 90; n++)
        await inTransaction('abort', (transaction) => transaction.send(record('events', source, 'x'.repeat(3500))));
    },
    [],
  ],
])('events are stored and delivered in order after a transaction: %s', async (name, produce, expected) => {
  const { id: source } = await api.source(CODE);
  const path = `/${name.replaceAll(' ', '-')}`;
  await api.subscribe(source, await api.webhook(`${receiver.url.slice(0, -1)}${path}`));
  const send = (value: unknown) => producer.send(record('events', source, value));
  await send('before');
  // the services have read the partition to its end before each step
  await eventually(async () => expect((await api.get(`/sources/${source}/event_summaries`)).body.data).toHaveLength(1));
  await produce(send, source);
  await send('after');
  const all = ['before', ...expected, 'after'];
  await eventually(() => expect(receiver.received.filter((each) => each.path === path).map(({ body }) => body)).toEqual(all));
  await eventually(async () => {
    const { data } = (await api.get(`/sources/${source}/event_summaries?expand=event`)).body;
    expect(data.map(({ event }: { event: unknown }) => event)).toEqual(all.toReversed());
  });
  // reads the log from before the transaction on, up to its end
  await abortMany('events', source);
  const [listener, { id: from }] = [
    await api.webhook(`${receiver.url.slice(0, -1)}${path}-again`),
    (await api.get(`/sources/${source}/event_summaries?limit=100`)).body.data.at(-1),
  ];
  const replay = await api.post('/replays', { emitter_id: source, listener_id: listener, from, to: '9999999999999-0' });
  expect(replay.status).toBe(202);
  await eventually(async () => expect((await api.get(`/replays/${replay.body.data.id}`)).body.data).toMatchObject({ status: 'done' }));
  expect(receiver.received.filter((each) => each.path === `${path}-again`).map(({ body }) => body)).toEqual(all);
});

it('workflows are registered after a large aborted transaction', async () => {
  const owner_id = (await api.get('/users/me')).body.data.id;
  const register = async () => {
    const id = `p_${randomUUID().replaceAll('-', '')}`;
    await producer.send(record('workflows', id, { owner_id, name: 'w' }));
    await eventually(async () => expect((await api.get(`/workflows/${id}/event_summaries`)).status).toBe(200));
  };
  await register();
  // to each partition
  for (let n = 0; n < 12; n++) await abortMany('workflows', `p_${randomUUID().replaceAll('-', '')}`);
  for (let n = 0; n < 12; n++) await register();
});
