import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createLog } from '#observability';
import { KafkaConfig } from './kafka.config.js';
import { KafkaClient } from './kafka.js';
import { LogReader } from './log-reader.js';

const topic = `log-reader-${randomUUID()}`;
const log = createLog('test', 'silent');
const kafka = new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: process.env.SLUICE_TEST_KAFKA_BROKERS ?? '' }), 'test', log);

beforeAll(async () => {
  await kafka.withAdmin((admin) => admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true }));
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [0, 1].map((partition) => ({ partition, value: 'x' })) });
  await producer.disconnect();
});
afterAll(() => kafka.withAdmin((admin) => admin.deleteTopics({ topics: [topic] })));

const sockets = () => process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length;

/** The sizes of the maps in the private fields of kafkajs' client. */
const sizes = () => {
  const fields = Object.getOwnPropertySymbols(kafka).map((name) => (kafka as unknown as Record<symbol, unknown>)[name]);
  return fields.filter((field) => field instanceof Map).map((map) => map.size);
};

it('reads a topic again and again, and leaves no connection and no entry in the shared client', async () => {
  const reader = new LogReader(kafka, log);
  const ranges = await reader.bounds(topic);
  const [socketsBefore, before] = [sockets(), sizes()];
  const read: number[] = [];
  for (let time = 0; time < 3; time++)
    await reader.read('routing', topic, ranges, (partition) => {
      expect(sockets()).toBeGreaterThan(socketsBefore);
      return read.push(partition) > 0;
    });
  expect(read.toSorted((one, other) => one - other)).toEqual([0, 0, 0, 1, 1, 1]);
  expect(before).toEqual([0]);
  expect(sizes()).toEqual(before);
  // the system closes them a moment later
  while (sockets() > socketsBefore) await new Promise((resolve) => setTimeout(resolve, 20));
});
