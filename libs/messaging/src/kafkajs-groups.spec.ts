import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import type { EachBatchHandler } from 'kafkajs';
import { withEmptyBatches } from './kafkajs-groups.js';

// the spec needs the instances that kafkajs itself loads
const load = createRequire(import.meta.url);
const logger = { namespace: () => logger, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

describe('a kafkajs consumer', () => {
  const Runner = load('kafkajs/src/consumer/runner.js') as new (options: object) => {
    running: boolean;
    commitOffsets(offsets: object): Promise<void>;
  };

  /** A consumer of kafkajs whose group fails commits with these errors, one after the other. */
  function consumer(...errors: (Error | undefined)[]) {
    const commits: object[] = [];
    const consumerGroup = {
      commitOffsets: (offsets: object) => {
        commits.push(offsets);
        const error = errors.shift();
        return error ? Promise.reject(error) : Promise.resolve();
      },
    };
    const runner = new Runner({ logger, consumerGroup, retry: { retries: 5, initialRetryTime: 1 } });
    runner.running = true;
    return { runner, commits };
  }

  it('does not repeat a commit that failed, because the group may have another generation by then', async () => {
    const outage = Object.assign(new Error('connect ECONNREFUSED'), { name: 'KafkaJSConnectionError', retriable: true });
    const { runner, commits } = consumer(outage);
    await expect(runner.commitOffsets({ topics: [] })).rejects.toThrow('ECONNREFUSED');
    await runner.commitOffsets({ topics: ['later'] });
    expect(commits).toEqual([{ topics: [] }, { topics: ['later'] }]);
  });

  it('fails a commit of a consumer that is not running, so that it does not count as committed', async () => {
    const { runner, commits } = consumer();
    runner.running = false;
    await expect(runner.commitOffsets({})).rejects.toMatchObject({
      name: 'KafkaJSNonRetriableError',
      message: 'the consumer is not running',
    });
    expect(commits).toEqual([]);
  });
});

interface FetchingGroup {
  maxWaitTime: number;
  members: unknown[];
  leaderId: string;
  memberId: string;
  subscriptionState: { paused(): unknown[] };
  fetch(nodeId: number): Promise<unknown[]>;
  resume(partitions: object[]): void;
}

const { prototype: groups } = load('kafkajs/src/consumer/consumerGroup.js') as { prototype: FetchingGroup };
const { prototype: runners } = load('kafkajs/src/consumer/runner.js') as {
  prototype: { stop(): Promise<void>; handleBatch(batch: object): Promise<void> };
};

/** A member of a group whose broker never responds. */
const member = (changes: Partial<FetchingGroup> = {}): FetchingGroup =>
  Object.assign(Object.create(groups), {
    ...{ maxWaitTime: 4000, leaderId: 'a', memberId: 'a', members: ['a'], subscriptionState: { paused: () => [] } },
    cluster: { refreshMetadataIfNecessary: () => new Promise(() => {}) },
    ...changes,
  }) as FetchingGroup;

describe('a batch without visible records', () => {
  const Batch = load('kafkajs/src/consumer/batch.js') as new (topic: string, offset: string, data: object) => object;
  const message = (offset: number, isControlRecord: boolean) => ({ offset: String(offset), isControlRecord });
  /** The sizes of the batches that the handler of a consumer gets, which resolves offsets itself, and the offsets behind which it continues. */
  async function handled(messages: object[], wrap: (handler: EachBatchHandler) => EachBatchHandler) {
    const [calls, resolved]: [number[], string[]] = [[], []];
    const one = Object.assign(Object.create(runners) as typeof runners, {
      ...{ running: true, eachBatchAutoResolve: true, heartbeat: async () => {}, instrumentationEmitter: { emit: () => {} } },
      ...{ autoCommitOffsets: async () => {}, autoCommitOffsetsIfNecessary: async () => {} },
      consumerGroup: { resolveOffset: ({ offset }: { offset: string }) => void resolved.push(offset), hasSeekOffset: () => false },
      eachBatch: wrap(async ({ batch }) => void calls.push(batch.messages.length)),
    });
    await one.handleBatch(new Batch('t', '10', { partition: 0, highWatermark: '100', abortedTransactions: [], messages }));
    return { calls, resolved };
  }

  it('reaches the handler that wants it, and the consumer continues behind hidden records, but not behind records that were not fetched', async () => {
    expect(await handled([], withEmptyBatches)).toEqual({ calls: [0], resolved: [] });
    expect(await handled([message(10, true), message(11, true)], withEmptyBatches)).toEqual({ calls: [0], resolved: ['11'] });
    expect(await handled([message(10, false)], withEmptyBatches)).toEqual({ calls: [1], resolved: ['10'] });
    expect(await handled([message(10, true)], (handler) => handler)).toEqual({ calls: [], resolved: ['10'] });
  });
});

describe('a fetch of a kafkajs consumer', () => {
  it.each([
    ['as long as configured if it is alone', {}, 4000],
    ['a second at most with other members', { members: ['a', 'b'] }, 1000],
    ['a second at most if another member leads the group', { leaderId: 'b', members: [] }, 1000],
    ['not at all while partitions are paused', { subscriptionState: { paused: () => ['t'] } }, 0],
    ['not longer than configured', { maxWaitTime: 200, members: ['a', 'b'] }, 200],
  ])('waits for data %s', (_, changes, expected) => {
    const one = member(changes);
    void one.fetch(1);
    expect(one.maxWaitTime).toBe(expected);
  });

  it('waits as long as configured again when the others have left', () => {
    const one = member({ members: ['a', 'b'] });
    void one.fetch(1);
    one.members = ['a'];
    void one.fetch(1);
    expect(one.maxWaitTime).toBe(4000);
  });

  it('waits a moment for records while partitions are paused, until one is resumed', async () => {
    const pausedMember = () =>
      member({
        ...{ subscriptionState: { paused: () => ['t'], assigned: () => [], active: () => [], resume: () => {} }, logger },
        ...{ offsetManager: { resolveOffsets: async () => {}, committedOffsets: () => ({}) } },
        cluster: { refreshMetadataIfNecessary: async () => {} },
      } as object);
    const [resumed, other] = [pausedMember(), pausedMember()];
    const ended: string[] = [];
    const fetches = [other.fetch(1).then(() => ended.push('other')), resumed.fetch(1).then(() => ended.push('resumed'))];
    resumed.resume([{ topic: 't' }]);
    await Promise.all(fetches);
    expect(ended).toEqual(['resumed', 'other']);
  });

  it('returns no batches, instead of waiting for a response, when the consumer stops', async () => {
    const one = member();
    const fetched = [one.fetch(1), one.fetch(2)];
    await runners.stop.call(Object.assign(Object.create(runners), { running: false, consumerGroup: one }));
    expect(await Promise.all(fetched)).toEqual([[], []]);
  });
});

const Runner = load('kafkajs/src/consumer/runner.js') as new (options: object) => {
  running: boolean;
  fetchManager: { start(): Promise<void> };
  scheduleFetchManager(): void;
};
const { prototype: group } = load('kafkajs/src/consumer/consumerGroup.js') as { prototype: { joinAndSync(): Promise<void> } };

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
  const Group = load('kafkajs/src/consumer/consumerGroup.js') as new (options: object) => {
    memberId: string | null;
    generationId: number | null;
    coordinator: object;
    assigned(): { topic: string; partitions: number[] }[];
  };
  const { createErrorFromCode } = load('kafkajs/src/protocol/error.js') as { createErrorFromCode(code: number): Error };
  const { AssignerProtocol } = load('kafkajs') as typeof import('kafkajs');
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

describe('a heartbeat of a kafkajs consumer', () => {
  const ConsumerGroup = load('kafkajs/src/consumer/consumerGroup.js') as new (options: object) => {
    heartbeat(options: object): Promise<void>;
  };
  const COORDINATOR = { nodeId: 1, host: 'one', port: 9092 };
  const OTHER = { nodeId: 2, host: 'two', port: 9092 };

  it.each([
    ['makes it join again if the cluster has lost the coordinator', [OTHER], 'NOT_COORDINATOR_FOR_GROUP'],
    ['makes it join again if another broker has the number of the coordinator', [{ ...OTHER, nodeId: 1 }], 'NOT_COORDINATOR_FOR_GROUP'],
    ['goes to the coordinator while the cluster has it, also if the client has opened another connection', [OTHER, COORDINATOR], 'sent'],
    ['goes to the coordinator while the client has no metadata', null, 'sent'],
  ])('%s', async (_, brokers, expected) => {
    const sent: string[] = [];
    const { nodeId, ...connectionPool } = COORDINATOR;
    const cluster = { brokerPool: { brokers: {}, metadata: brokers && { brokers } } };
    const member = Object.assign(new ConsumerGroup({ logger, cluster, instrumentationEmitter: { emit: () => {} } }), {
      coordinator: { nodeId, connectionPool, heartbeat: async () => void sent.push('sent') },
      memberId: 'm',
    });
    await member.heartbeat({ interval: 0 }).catch(({ type }: { type: string }) => sent.push(type));
    expect(sent).toEqual([expected]);
  });

  it('is sent although the clock was set back', async () => {
    const heartbeat = jest.fn(async () => {});
    const member = Object.assign(
      new ConsumerGroup({ logger, cluster: { brokerPool: { metadata: null } }, instrumentationEmitter: { emit: () => {} } }),
      {
        coordinator: { connectionPool: {}, heartbeat },
        memberId: 'm',
      },
    );
    const now = Date.now();
    const clock = jest.spyOn(Date, 'now');
    const sentAt = async (ms: number) => {
      clock.mockReturnValue(now + ms);
      await member.heartbeat({ interval: 1500 });
      return heartbeat.mock.calls.length;
    };
    expect([await sentAt(2000), await sentAt(3000), await sentAt(-3600_000), await sentAt(-3600_000 + 1000)]).toEqual([1, 1, 2, 2]);
    clock.mockRestore();
  });
});
