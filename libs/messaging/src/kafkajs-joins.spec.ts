import { expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

const requireKafkajs = createRequire(import.meta.url);
const Runner = requireKafkajs('kafkajs/src/consumer/runner.js') as new (options: object) => {
  running: boolean;
  fetchManager: { start(): Promise<void> };
  scheduleFetchManager(): void;
};
const { prototype: group } = requireKafkajs('kafkajs/src/consumer/consumerGroup.js') as { prototype: { joinAndSync(): Promise<void> } };

const logger = { namespace: () => logger, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

it('emits REBALANCING before a member joins again that the group has removed', async () => {
  const joined = Promise.withResolvers<void>();
  const events: object[] = [];
  const instrumentationEmitter = { emit: (event: string, payload: object) => events.push({ event, ...payload }) };
  const consumerGroup = Object.assign(Object.create(group) as typeof group, {
    groupId: 'g',
    memberId: 'm',
    instrumentationEmitter,
    // where kafkajs sends the request
    retrier: async () => {
      runner.running = false;
      joined.resolve();
    },
  });
  const runner = new Runner({ logger, consumerGroup, instrumentationEmitter: { emit() {} }, retry: { retries: 0 } });
  runner.running = true;
  runner.fetchManager = { start: () => Promise.reject(Object.assign(new Error('unknown'), { type: 'UNKNOWN_MEMBER_ID' })) };
  runner.scheduleFetchManager();
  await joined.promise;
  expect(events).toEqual([{ event: 'consumer.rebalancing', groupId: 'g', memberId: null }]);
});
