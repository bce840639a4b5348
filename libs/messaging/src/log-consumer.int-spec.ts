import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLog } from '#observability';
import { KafkaConfig } from './kafka.config.js';
import { KafkaClient } from './kafka.js';
import { LogConsumer } from './log-consumer.js';
import type { Position } from './watermark.js';

const RECORDS = 60;
/** 12 MiB in each partition, of which 8 MiB may wait. */
const BYTES = 200 * 1024;

const topic = `log-consumer-${randomUUID()}`;
const log = createLog('test', 'silent');
const kafka = new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: process.env.SLUICE_TEST_KAFKA_BROKERS ?? '' }), 'test', log);

beforeAll(async () => {
  await kafka.withAdmin((admin) => admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true }));
  const producer = kafka.producer();
  await producer.connect();
  for (let sent = 0; sent < RECORDS; sent++) {
    const messages = [0, 1].map((partition) => ({ partition, value: Buffer.alloc(BYTES, sent) }));
    await producer.send({ topic, messages });
  }
  await producer.disconnect();
});
afterAll(() => kafka.withAdmin((admin) => admin.deleteTopics({ topics: [topic] })));

it('reads a partition to its end while the batches of another one fail, and that one when they succeed', async () => {
  const handled: [number[], number[]] = [[], []];
  const positions = new Map<number, Position>();
  let fails = true;
  const consumer = new LogConsumer(kafka, log, {
    ...{ topic, group: topic, ownGroup: true },
    positions: async () => positions,
    handle: async (partition, records, _before, after) => {
      if (fails && partition === 0) throw new Error('poison');
      positions.set(partition, after);
      handled[partition as 0 | 1].push(...records.map(({ offset }) => offset));
    },
  });
  const isRead = async (partition: 0 | 1) => {
    while (handled[partition].length < RECORDS) await sleep(20);
  };
  const all = Array.from({ length: RECORDS }, (_, offset) => offset);
  await consumer.start();
  await isRead(1);
  expect(handled).toEqual([[], all]);
  fails = false;
  await isRead(0);
  expect(handled).toEqual([all, all]);
  await consumer.stop();
});
