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

describe('a consumer that the group has removed', () => {
  const Group = requireKafkajs('kafkajs/src/consumer/consumerGroup.js') as new (options: object) => {
    memberId: string | null;
    generationId: number | null;
    coordinator: object;
    assigned(): { topic: string; partitions: number[] }[];
  };
  const { createErrorFromCode } = requireKafkajs('kafkajs/src/protocol/error.js') as { createErrorFromCode(code: number): Error };
  const { AssignerProtocol } = requireKafkajs('kafkajs') as typeof import('kafkajs');
  const [LOADING, TIMED_OUT, REMOVED] = [14, 7, 25].map(createErrorFromCode) as [Error, Error, Error];
  const ASSIGNMENT = AssignerProtocol.MemberAssignment.encode({ version: 0, assignment: { t: [3] }, userData: Buffer.alloc(0) });

  /** Resolves with the partitions that it reads, and how often it has joined. @param failures of its attempts to join */
  const read = (failures: { join?: Error; sync?: Error }[]): Promise<unknown> =>
    new Promise((resolve) => {
      let joins = 0;
      const coordinator = {
        connectionPool: {},
        heartbeat: async () => {
          if (joins === 0) throw REMOVED;
        },
        joinGroup: async () => {
          const { join } = failures[joins++] ?? {};
          if (join) throw join;
          return { generationId: joins + 1, leaderId: 'other', memberId: 'new', members: [], groupProtocol: 'any' };
        },
        syncGroup: async () => {
          const { sync } = failures[joins - 1] ?? {};
          if (sync) throw sync;
          return { memberAssignment: ASSIGNMENT };
        },
      };
      const instrumentationEmitter = {
        emit: (event: string) => {
          if (event !== 'consumer.group_join') return;
          runner.running = false;
          resolve({ joins, assigned: consumerGroup.assigned() });
        },
      };
      const cluster = {
        brokerPool: { metadata: null },
        findGroupCoordinator: async () => coordinator,
        findTopicPartitionMetadata: () => [{ partitionId: 3 }],
        getNodeIds: () => ['1'],
        committedOffsets: () => ({}),
      };
      const options = { logger, instrumentationEmitter, retry: { initialRetryTime: 1, maxRetryTime: 5, retries: 20 } };
      const consumerGroup = new Group({ ...options, cluster, groupId: 'g', topics: ['t'], topicConfigurations: {}, assigners: [] });
      const fetch = () => new Promise((fetched) => setTimeout(() => fetched([]), 1));
      Object.assign(consumerGroup, { memberId: 'former', generationId: 1, coordinator, fetch });
      const runner = new Runner({ ...options, consumerGroup, heartbeatInterval: 0, concurrency: 1, autoCommit: false, onCrash: resolve });
      runner.running = true;
      runner.scheduleFetchManager();
    });

  it.each([
    ['a broker still loads the group', { join: LOADING }],
    ['the response with its assignment is lost', { sync: TIMED_OUT }],
  ])('joins again if %s', async (_, failure) => {
    expect(await read([failure, {}])).toEqual({ joins: 2, assigned: [{ topic: 't', partitions: [3] }] });
    expect(await read([failure, failure, {}])).toMatchObject({ joins: 3 });
  });
});
