import { expect, it } from '@jest/globals';
import type { ICustomPartitioner } from 'kafkajs';
import { createRequire } from 'node:module';
import { type KafkaClient, partitionOf } from './kafka.js';
import { Publisher } from './publisher.js';

interface ProduceRequest {
  topicData: { topic: string; partitions: { partition: number; messages: { key: string }[] }[] }[];
}

// the spec needs the instances that kafkajs itself loads
const load = createRequire(import.meta.url);
const createSend = load('kafkajs/src/producer/sendMessages.js') as (options: object) => (batch: object) => Promise<unknown[]>;
const createRetry = load('kafkajs/src/retry/index.js') as (options: object) => unknown;
const createManager = load('kafkajs/src/producer/eosManager/index.js') as (options: object) => unknown;
const { KafkaJSConnectionClosedError: Closed } = load('kafkajs/src/errors.js') as {
  KafkaJSConnectionClosedError: new (message: string, at: object) => Error;
};

const logger = { namespace: () => logger, debug: () => {}, warn: () => {}, error: () => {} };
const PARTITIONS = 2;

/** Two brokers, each of which leads a partition. The first one fails with its first request, and the second one leads both partitions then. */
function failingBroker() {
  const written: string[] = [];
  let hasFailed = false;
  const broker = (nodeId: number) => ({
    nodeId,
    produce: async ({ topicData }: ProduceRequest) => {
      if (nodeId === 0 && !hasFailed) {
        // the other one has responded by then
        await new Promise((resolve) => setTimeout(resolve, 10));
        hasFailed = true;
        throw new Closed('closed', {});
      }
      const topics = topicData.map(({ topic, partitions }) => {
        for (const { messages } of partitions) written.push(...messages.map(({ key }) => key));
        return { topicName: topic, partitions: partitions.map(({ partition }) => ({ partition, errorCode: 0 })) };
      });
      return { topics };
    },
  });
  const brokers = [broker(0), broker(1)];
  const leaderOf = (partition: number) => (hasFailed ? 1 : partition);
  const cluster = {
    isConnected: () => true,
    refreshMetadata: async () => {},
    refreshMetadataIfNecessary: async () => {},
    addMultipleTargetTopics: async () => {},
    removeBroker: () => {},
    findBroker: async ({ nodeId }: { nodeId: string }) => brokers[Number(nodeId)],
    findTopicPartitionMetadata: () =>
      Array.from({ length: PARTITIONS }, (_, partitionId) => ({ partitionId, leader: leaderOf(partitionId) })),
    findLeaderForPartitions: (_: string, partitions: string[]) =>
      Object.groupBy(partitions.map(Number), (partition) => String(leaderOf(partition))),
  };
  const producer = ({ createPartitioner }: { createPartitioner: ICustomPartitioner }) => ({
    sendBatch: createSend({
      ...{ logger, cluster, partitioner: createPartitioner(), eosManager: createManager({ logger, cluster }) },
      retrier: createRetry({ retries: 5, initialRetryTime: 10 }),
    }),
  });
  return { written, publisher: new Publisher({ producer } as unknown as KafkaClient) };
}

it('records are acknowledged when they are written, also those whose partition moves to a broker that has acknowledged others of the batch', async () => {
  const { written, publisher } = failingBroker();
  const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
  const moved = keys.filter((key) => partitionOf(key, PARTITIONS) === 0);
  expect(moved.length).toBeGreaterThan(0);
  await publisher.send(keys.map((key) => ({ topic: 'events', key, value: '1' })));
  expect(written.sort()).toEqual(keys);
});
