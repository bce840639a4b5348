import { beforeEach, describe, expect, it } from '@jest/globals';
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
    cluster: {},
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

describe('the member as which a consumer joins', () => {
  interface Group {
    memberId: string | null;
    generationId: number | null;
    joinAndSync(): Promise<void>;
    leave(): Promise<void>;
  }

  let count = 1;
  /** A start of a consumer, whose requests the brokers answer or not. */
  const started = (cluster: object, { brokersAreDown = false } = {}) => {
    const asked: (string | null)[] = [];
    const consumerGroup: Group = Object.assign(Object.create(group) as Group, {
      cluster,
      groupId: 'g',
      memberId: null,
      generationId: null,
      instrumentationEmitter: { emit() {} },
      coordinator: { leaveGroup: () => (brokersAreDown ? Promise.reject(new Error('down')) : Promise.resolve()) },
      // where kafkajs sends the request
      retrier: async () => {
        asked.push(consumerGroup.memberId);
        consumerGroup.memberId ??= `member ${count++}`;
        consumerGroup.generationId = 1;
      },
    });
    return { consumerGroup, asked };
  };
  beforeEach(() => void (count = 1));

  it.each([
    ['is the same after a crash without leaving', async () => {}, ['member 1']],
    ['is the same if it could not leave', (former: Group) => expect(former.leave()).rejects.toThrow('down'), ['member 1']],
  ])('%s', async (_, end, expected) => {
    const cluster = {};
    const { consumerGroup } = started(cluster, { brokersAreDown: true });
    await consumerGroup.joinAndSync();
    await end(consumerGroup);
    const next = started(cluster);
    await next.consumerGroup.joinAndSync();
    expect(next.asked).toEqual(expected);
  });

  it('is a new one after it has left', async () => {
    const cluster = {};
    const { consumerGroup } = started(cluster);
    await consumerGroup.joinAndSync();
    await consumerGroup.leave();
    const next = started(cluster);
    await next.consumerGroup.joinAndSync();
    expect(next.asked).toEqual([null]);
  });

  it('is a new one if the group has removed it', async () => {
    const { consumerGroup, asked } = started({});
    await consumerGroup.joinAndSync();
    consumerGroup.memberId = null;
    await consumerGroup.joinAndSync();
    expect(asked).toEqual([null, null]);
  });

  it('is a new one in another consumer', async () => {
    await started({}).consumerGroup.joinAndSync();
    const other = started({});
    await other.consumerGroup.joinAndSync();
    expect(other.asked).toEqual([null]);
  });
});
