import kafkajs, { type EachBatchHandler } from 'kafkajs';
import groupModule from 'kafkajs/src/consumer/consumerGroup.js';
import eventsModule from 'kafkajs/src/consumer/instrumentationEvents.js';
import runnerModule from 'kafkajs/src/consumer/runner.js';
import errorModule from 'kafkajs/src/protocol/error.js';
import { type Address, type Cluster, isLost } from './kafkajs-connections.js';

/** A consumer's membership in its group, from a start to a stop. */
interface ConsumerGroup {
  /** The connections of the consumer, from its creation on. */
  cluster: Cluster;
  /** The broker that knows the members; null: it has not joined yet. */
  coordinator: Address | null;
  groupId: string;
  /** null: it has not joined yet, or the group has removed it. */
  memberId: string | null;
  /** null: it has not joined yet. */
  generationId: number | null;
  instrumentationEmitter: { emit(event: string, payload: object): void };
  /** Of its last heartbeat, as from Date.now(). */
  lastRequest: number;
  /** Of a fetch without data, in ms. */
  maxWaitTime: number;
  /** Known to the leader. */
  members: unknown[] | null;
  isLeader(): boolean;
  paused(): unknown[];
  joinAndSync(): Promise<void>;
  heartbeat(options: { interval: number }): Promise<void>;
  leave(): Promise<void>;
  fetch(nodeId: number): Promise<FetchedBatch[]>;
  resume(partitions: object[]): void;
  commitOffsets(offsets: object): Promise<void>;
}

/** The records of a partition in a fetch. */
interface FetchedBatch {
  /** Whether none is passed on. */
  isEmpty(): boolean;
}

interface Runner {
  running: boolean;
  consumerGroup: ConsumerGroup;
  commitOffsets(offsets: object): Promise<void>;
  handleBatch(batch: FetchedBatch): Promise<void>;
  processEachBatch(batch: FetchedBatch): Promise<void>;
  stop(): Promise<void>;
  eachBatch?: EachBatchHandler;
}

const { prototype: runner } = runnerModule as { prototype: Runner };

/**
 * kafkajs 2.2.4 repeats a commit that failed for as long as the brokers are down, and sends the old positions with whatever generation the group has
 * by then. If another process has owned a partition meanwhile, its newer position would be overwritten, and records would be repeated. One attempt
 * belongs to one generation: the brokers refuse it after a rebalance, and our consumers commit their current positions with the next tick.
 */
runner.commitOffsets = function (this: Runner, offsets: object): Promise<void> {
  return this.running
    ? this.consumerGroup.commitOffsets(offsets)
    : Promise.reject(new kafkajs.KafkaJSNonRetriableError('the consumer is not running'));
};

const { handleBatch } = runner;
const wanting = new WeakSet<EachBatchHandler>();

/**
 * kafkajs 2.2.4 does not report that a fetch found no records, although the end of the log that it returned may be below the position of the reader; nor that
 * all records of a fetch are hidden, such as those of aborted transactions. With this, the handler also gets these empty batches.
 */
export function withEmptyBatches(handler: EachBatchHandler): EachBatchHandler {
  wanting.add(handler);
  return handler;
}

runner.handleBatch = async function (this: Runner, batch: FetchedBatch): Promise<void> {
  if (this.running && this.eachBatch && wanting.has(this.eachBatch) && batch.isEmpty()) {
    // kafkajs takes the end of the log for the last offset of a batch without records: there may be many before it that the response had no capacity for
    await this.processEachBatch.call(Object.create(this, { eachBatchAutoResolve: { value: false } }) as Runner, batch);
  }
  await handleBatch.call(this, batch);
};

const { prototype: group } = groupModule as { prototype: ConsumerGroup };
const { fetch, resume } = group;
const { stop } = runner;

/** A consumer that is not alone in its group sends a heartbeat, and so notices a rebalance, at least as often as this. */
const SHARED_WAIT_MS = 1000;
/** How long a record may wait to be fetched while other partitions are paused. */
const PAUSED_WAIT_MS = 100;
/** The configured `maxWaitTimeInMs`, and functions that end the fetches in progress, or their waits for a partition to be resumed. */
const fetching = new WeakMap<ConsumerGroup, { longest: number; ends: Set<() => void>; wakes: Set<() => void> }>();

/**
 * kafkajs 2.2.4 sends heartbeats only between fetches. So a long wait for data, which saves an idle consumer most of its requests, would delay
 * the others of the group: only a consumer that is alone waits as long as it is configured to.
 *
 * It also waits if only paused partitions have records, even when they are resumed meanwhile: a request cannot be ended, and the broker handles no other one
 * of the connection before it. So a fetch while partitions are paused takes the records that exist; without any, it waits here, until a partition is resumed.
 */
group.fetch = function (this: ConsumerGroup, nodeId: number): Promise<FetchedBatch[]> {
  const { longest, ends, wakes } = fetching.get(this) ?? { longest: this.maxWaitTime, ends: new Set(), wakes: new Set() };
  fetching.set(this, { longest, ends, wakes });
  const isAlone = this.isLeader() && this.members?.length === 1;
  const resumed = this.paused().length > 0 ? untilCalled(wakes, Math.min(longest, PAUSED_WAIT_MS)) : undefined;
  this.maxWaitTime = resumed ? 0 : isAlone ? longest : Math.min(longest, SHARED_WAIT_MS);
  return new Promise((resolve, reject) => {
    const end = () => resolve([]);
    ends.add(end);
    fetch
      .call(this, nodeId)
      .then(async (batches) => {
        if (batches.every((batch) => batch.isEmpty())) await resumed;
        resolve(batches);
      })
      .catch(reject)
      .finally(() => ends.delete(end));
  });
};

group.resume = function (this: ConsumerGroup, partitions: object[]): void {
  resume.call(this, partitions);
  for (const wake of fetching.get(this)?.wakes ?? []) wake();
};

/** Resolves when the function that it adds to `wakes` is called, at the latest after this time. */
const untilCalled = (wakes: Set<() => void>, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      wakes.delete(wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    wakes.add(wake);
  });

/** kafkajs 2.2.4 waits for the fetch in progress before it leaves the group, although it ignores its records. */
runner.stop = function (this: Runner): Promise<void> {
  const stopped = stop.call(this);
  for (const end of fetching.get(this.consumerGroup)?.ends ?? []) end();
  return stopped;
};

const { createErrorFromCode } = errorModule as { createErrorFromCode(code: number): Error };
const { events } = eventsModule as { events: { REBALANCING: string } };
const { joinAndSync: join, heartbeat, leave } = group;
/** By consumer: the member that the brokers may still know. */
const memberIds = new WeakMap<object, string | null>();
/** Those that have begun to join, and have no assignment yet. */
const joining = new WeakSet<ConsumerGroup>();
/** Codes of errors of Kafka's protocol. */
const [NOT_COORDINATOR_FOR_GROUP, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS] = [16, 25, 27];

/**
 * kafkajs 2.2.4 emits REBALANCING only if the group announces a rebalance. It joins again without an event if the group has removed the member, so
 * that another process owns the partitions already. With this, the event precedes every join.
 *
 * After a crash kafkajs joins as a new member, although it could not leave the group while the brokers were down: the group then waits for the old one
 * until its session ends, and again after each restart of the brokers. With this, a consumer continues as the member that it was.
 */
group.joinAndSync = async function (this: ConsumerGroup): Promise<void> {
  const { cluster, groupId, memberId } = this;
  this.instrumentationEmitter.emit(events.REBALANCING, { groupId, memberId });
  if (this.generationId === null) this.memberId ??= memberIds.get(cluster) ?? null;
  joining.add(this);
  try {
    await join.call(this);
    joining.delete(this);
  } finally {
    memberIds.set(cluster, this.memberId);
  }
};

/**
 * kafkajs 2.2.4 fetches again after a failed attempt to join, for instance because a broker that was frozen still loads the group. If the group had removed the
 * member, it then sends no heartbeats, so it never learns that it has to join; if only the response with its assignment was lost, its heartbeats
 * succeed, and it reads its former partitions. With this, it joins again, as if the group had responded so.
 *
 * It also sends heartbeats to a coordinator that the cluster has lost, although another broker has taken its place. And after the clock of the machine was set
 * back, it sends none until the clock has caught up: the group would remove the member, which would not notice that.
 */
group.heartbeat = function (this: ConsumerGroup, options: { interval: number }): Promise<void> {
  if (this.coordinator && isLost(this.coordinator, this.cluster)) return Promise.reject(createErrorFromCode(NOT_COORDINATOR_FOR_GROUP));
  if (Date.now() < this.lastRequest) this.lastRequest = 0;
  if (!joining.has(this)) return heartbeat.call(this, options);
  return Promise.reject(createErrorFromCode(this.memberId === null ? UNKNOWN_MEMBER_ID : REBALANCE_IN_PROGRESS));
};

group.leave = async function (this: ConsumerGroup): Promise<void> {
  await leave.call(this);
  memberIds.delete(this.cluster);
};
