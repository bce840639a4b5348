import { afterEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer } from 'kafkajs';
import { createLog, metrics } from '#observability';
import type { KafkaClient } from './kafka.js';
import { LogConsumer } from './log-consumer.js';
import type { LogRecord } from './log-record.js';
import type { Position } from './watermark.js';

// the instances that kafkajs itself loads
const load = createRequire(import.meta.url);
const createConsumer = load('kafkajs/src/consumer/index.js') as (options: object) => Consumer;
const { AssignerProtocol } = load('kafkajs') as typeof import('kafkajs');
const { createErrorFromCode } = load('kafkajs/src/protocol/error.js') as { createErrorFromCode(code: number): Error };
const REBALANCE_IN_PROGRESS = 27;
const logger = { namespace: () => logger, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const TOPIC = 'events';
const MIB = 1024 * 1024;

interface FetchRequest {
  maxWaitTime: number;
  topics: { partitions: { partition: number; fetchOffset: string }[] }[];
}

/** A broker with all partitions, below the consumer of kafkajs. Each fetch of a partition returns one record, whose timestamp is its offset. */
class FakeBroker {
  nodeId = 1;
  connectionPool = {};
  assigned: number[];
  /** By partition. */
  readonly ends: number[];
  /** The partitions of each fetch, with the offsets. */
  readonly fetches: Map<number, number>[] = [];
  /** How long each fetch may wait for records, in ms. */
  readonly waits: number[] = [];
  private generation = 1;
  private joined = 0;

  constructor(
    readonly partitions: number,
    private readonly recordBytes: number,
  ) {
    this.assigned = Array.from({ length: partitions }, (_, partition) => partition);
    this.ends = this.assigned.map(() => Infinity);
  }

  rebalance(assigned: number[]): void {
    this.assigned = assigned;
    this.generation += 1;
  }

  /** The offsets that were requested of the partition. */
  fetchesOf(partition: number): number[] {
    return this.fetches.flatMap((offsets) => offsets.get(partition) ?? []);
  }

  isConnected = () => true;
  async joinGroup() {
    this.joined = this.generation;
    return { generationId: this.joined, leaderId: 'other', memberId: 'm', members: [], groupProtocol: 'any' };
  }
  async syncGroup() {
    const assignment = { [TOPIC]: this.assigned };
    return { memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment, userData: Buffer.alloc(0) }) };
  }
  async heartbeat() {
    if (this.joined !== this.generation) throw createErrorFromCode(REBALANCE_IN_PROGRESS);
  }
  async leaveGroup() {}
  async offsetFetch({ topics }: { topics: { topic: string; partitions: { partition: number }[] }[] }) {
    return {
      responses: topics.map(({ topic, partitions }) => ({ topic, partitions: partitions.map((each) => ({ ...each, offset: '0' })) })),
    };
  }
  async fetch({ maxWaitTime, topics }: FetchRequest) {
    const requested = topics.flatMap(({ partitions }) => partitions);
    const offsets = new Map(requested.map(({ partition, fetchOffset }) => [partition, Number(fetchOffset)]));
    this.fetches.push(offsets);
    this.waits.push(maxWaitTime);
    const hasData = () => [...offsets].some(([partition, offset]) => offset < this.ends[partition]!);
    const end = performance.now() + maxWaitTime;
    do await sleep(1);
    while (!hasData() && performance.now() < end);
    const partitions = [...offsets].map(([partition, offset]) => ({
      ...{ partition, highWatermark: String(Math.min(this.ends[partition]!, offset + 1000)), abortedTransactions: [] },
      messages: offset < this.ends[partition]! ? [this.record(offset)] : [],
    }));
    return { responses: [{ topicName: TOPIC, partitions }] };
  }

  private record(offset: number) {
    return {
      ...{ offset: String(offset), timestamp: String(offset), key: null, value: Buffer.alloc(this.recordBytes), headers: {} },
      attributes: 0,
    };
  }
}

const eventually = async (expected: () => void | Promise<void>): Promise<void> => {
  for (let tries = 0; ; tries++) {
    try {
      return await expected();
    } catch (error) {
      if (tries === 400) throw error;
      await sleep(10);
    }
  }
};

const running: LogConsumer[] = [];
afterEach(async () => void (await Promise.all(running.splice(0).map((consumer) => consumer.stop()))));

/** A consumer of the partitions, with the consumer of kafkajs. `work`: for a batch of records. */
async function consuming({
  partitions = 2,
  recordBytes = MIB / 4,
  readPositions = async () => {},
  work = async (_partition: number, _records: LogRecord[]): Promise<void> => {},
}) {
  const broker = new FakeBroker(partitions, recordBytes);
  const committed = { [TOPIC]: {} };
  const cluster = {
    ...{ brokerPool: { metadata: null }, connect: async () => {}, disconnect: async () => {}, addMultipleTargetTopics: async () => {} },
    ...{
      refreshMetadata: async () => {},
      refreshMetadataIfNecessary: async () => {},
      getNodeIds: () => ['1'],
      committedOffsets: () => committed,
    },
    findTopicPartitionMetadata: () => broker.ends.map((_, partitionId) => ({ partitionId, leader: 1 })),
    findGroupCoordinator: async () => broker,
    findBroker: async () => broker,
  };
  const kafka = {
    watchedConsumer: (config: object) =>
      createConsumer({ cluster, logger, retry: { initialRetryTime: 1 }, ...config, heartbeatInterval: 10, partitionAssigners: [] }),
    withAdmin: async () => {},
  } as unknown as KafkaClient;
  const positions = new Map<number, Position>();
  /** The offsets that were handled, by partition, in this order. */
  const handled: number[][] = broker.ends.map(() => []);
  const consumer = new LogConsumer(kafka, createLog('test', 'silent'), {
    ...{ topic: TOPIC, group: 'test', ownGroup: true },
    positions: async () => {
      await readPositions();
      return new Map(positions);
    },
    handle: async (partition, records, _before, after) => {
      await work(partition, records);
      positions.set(partition, after);
      handled[partition]!.push(...records.map(({ offset }) => offset));
    },
  });
  running.push(consumer);
  await consumer.start();
  /** How much has been fetched and not handled. */
  const waiting = (partition: number) => (new Set(broker.fetchesOf(partition)).size - handled[partition]!.length) * recordBytes;
  return { broker, consumer, handled, positions, waiting };
}

const upTo = (count: number) => Array.from({ length: count }, (_, offset) => offset);

describe('a log consumer', () => {
  it('reads the other partitions while the batches of one fail, of which it keeps 8 MiB', async () => {
    const work = async (partition: number) => {
      if (partition === 0) throw new Error('poison');
    };
    const { handled, waiting } = await consuming({ work });
    await eventually(() => expect(handled[1]!.length).toBeGreaterThan(100));
    expect(handled[1]).toEqual(upTo(handled[1]!.length));
    expect(handled[0]).toEqual([]);
    expect(waiting(0)).toBe(8 * MIB);
  });

  it('reports the records that it has not handled, although the partition is paused, and for how long it has tried', async () => {
    const value = async (name: string) => (await metrics.getSingleMetric(name)!.get()).values.map((each) => each.value);
    await consuming({ partitions: 1, work: () => Promise.reject(new Error('poison')) });
    // the broker reports that 1000 records follow each fetch; 32 have been fetched
    await eventually(async () => expect(await value('sluice_consumer_lag_records')).toEqual([1031]));
    expect((await value('sluice_consumer_oldest_record_seconds'))[0]).toBeGreaterThan(0);
  });

  it('reads the other partitions while those whose batches fail have used up the limit for all, with one fetch of each waiting', async () => {
    const failing = 6;
    const work = async (partition: number) => {
      if (partition < failing) throw new Error('poison');
    };
    const { handled, waiting } = await consuming({ partitions: 8, recordBytes: MIB, work });
    await eventually(() => expect(handled[7]!.length).toBeGreaterThan(100));
    expect(upTo(failing).reduce((sum, partition) => sum + waiting(partition), 0)).toBeLessThanOrEqual((32 + 8) * MIB);
  });

  it('reads each record once and in order, however often a partition waits for its batches', async () => {
    const work = () => sleep(5);
    const { broker, handled } = await consuming({ partitions: 3, recordBytes: 2 * MIB, work });
    broker.ends.fill(60);
    await eventually(() => expect(handled).toEqual([upTo(60), upTo(60), upTo(60)]));
    // the first fetch may have begun before the positions were known
    const fetched = (partition: number) => broker.fetchesOf(partition).filter((offset) => offset > 0 && offset < 60);
    for (const partition of upTo(3)) expect([0, ...fetched(partition)]).toEqual(upTo(60));
  });

  it('lets no fetch wait at the broker for records of the other partitions while one is paused', async () => {
    const end = Promise.withResolvers<void>();
    const { broker, handled } = await consuming({ recordBytes: MIB, work: () => end.promise });
    broker.ends[1] = 0;
    await eventually(() => expect(broker.fetches.at(-1)).toEqual(new Map([[1, 0]])));
    end.resolve();
    await eventually(() => expect(handled[0]!.length).toBeGreaterThan(8));
    const waits = broker.waits.filter((_, index) => !broker.fetches[index]!.has(0));
    expect(waits).toEqual(waits.map(() => 0));
  });

  it('fetches nothing before it knows the positions', async () => {
    const known = Promise.withResolvers<void>();
    const { broker, handled, positions } = await consuming({ readPositions: () => known.promise });
    positions.set(0, { offset: 7, clock: 7 });
    await sleep(100);
    expect(broker.fetches).toEqual([]);
    known.resolve();
    await eventually(() => expect(handled[1]!.length).toBeGreaterThan(3));
    expect(broker.fetches[0]).toEqual(
      new Map([
        [0, 7],
        [1, 0],
      ]),
    );
    expect(handled[0]!.slice(0, 3)).toEqual([7, 8, 9]);
  });

  it('reads a partition that it had paused again when the group returns it', async () => {
    let fails = true;
    const work = async (partition: number) => {
      if (fails && partition === 0) throw new Error('poison');
    };
    const { broker, handled, waiting } = await consuming({ work });
    await eventually(() => expect(waiting(0)).toBe(8 * MIB));
    broker.rebalance([1]);
    const before = handled[1]!.length;
    await eventually(() => expect(handled[1]!.length).toBeGreaterThan(before + 10));
    fails = false;
    broker.rebalance([0, 1]);
    await eventually(() => expect(handled[0]!.length).toBeGreaterThan(100));
    expect(handled).toEqual([upTo(handled[0]!.length), upTo(handled[1]!.length)]);
  });

  it('fetches nothing more while it stops, and waits for the batch in progress', async () => {
    const end = Promise.withResolvers<void>();
    const { broker, consumer, handled } = await consuming({ work: () => end.promise });
    await eventually(() => expect(broker.fetches.length).toBeGreaterThan(2));
    const stopped = consumer.stop();
    await sleep(10);
    const { length } = broker.fetches;
    await sleep(100);
    expect(broker.fetches.length).toBe(length);
    end.resolve();
    await stopped;
    expect(handled.flat().length).toBeGreaterThan(0);
    expect(broker.fetches.length).toBe(length);
  });
});
