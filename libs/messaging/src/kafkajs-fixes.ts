import kafkajs, { type EachBatchHandler } from 'kafkajs';
import poolModule from 'kafkajs/src/cluster/brokerPool.js';
import clusterModule from 'kafkajs/src/cluster/index.js';
import groupModule from 'kafkajs/src/consumer/consumerGroup.js';
import eventsModule from 'kafkajs/src/consumer/instrumentationEvents.js';
import runnerModule from 'kafkajs/src/consumer/runner.js';
import queueModule from 'kafkajs/src/network/requestQueue/index.js';
import errorModule from 'kafkajs/src/protocol/error.js';
import encoderModule from 'kafkajs/src/protocol/encoder.js';
import responseModule from 'kafkajs/src/protocol/requests/fetch/v11/response.js';
import { eachSecond } from './each-second.js';
import { decodeFetchResponse } from './fetch-response.js';
import { type Address, type Cluster, isLost } from './lost-brokers.js';

const refused = (why: string) => Promise.reject(new kafkajs.KafkaJSNonRetriableError(why));

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
  fetch(nodeId: number): Promise<unknown[]>;
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
  return this.running ? this.consumerGroup.commitOffsets(offsets) : refused('the consumer is not running');
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
const { fetch } = group;
const { stop } = runner;

/** A consumer that is not alone in its group sends a heartbeat, and so notices a rebalance, at least as often as this. */
const SHARED_WAIT_MS = 1000;
/** The configured `maxWaitTimeInMs`, and functions that end the fetches in progress. */
const fetching = new WeakMap<ConsumerGroup, { longest: number; ends: Set<() => void> }>();

/**
 * kafkajs 2.2.4 sends heartbeats only between fetches. So a long wait for data, which saves an idle consumer most of its requests, would delay
 * the others of the group: only a consumer that is alone waits as long as it is configured to.
 */
group.fetch = function (this: ConsumerGroup, nodeId: number): Promise<unknown[]> {
  const { longest, ends } = fetching.get(this) ?? { longest: this.maxWaitTime, ends: new Set() };
  fetching.set(this, { longest, ends });
  const isAlone = this.isLeader() && this.members?.length === 1;
  this.maxWaitTime = isAlone && this.paused().length === 0 ? longest : Math.min(longest, SHARED_WAIT_MS);
  return new Promise((resolve, reject) => {
    const end = () => resolve([]);
    ends.add(end);
    fetch
      .call(this, nodeId)
      .then(resolve, reject)
      .finally(() => ends.delete(end));
  });
};

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

/** The connections of a client, one for each broker. */
interface BrokerPool {
  /** As from Date.now(); null: the metadata are out of date. */
  metadataExpireAt: number | null;
  /** In ms. */
  metadataMaxAge: number;
  refreshMetadataIfNecessary(topics: string[]): Promise<void>;
  connect(): Promise<void>;
  connectBroker(broker: { isConnected(): boolean }): Promise<void>;
  disconnect(): Promise<void>;
}

const { prototype: cluster } = clusterModule as { prototype: { brokerPool: BrokerPool; connect(): Promise<void> } };
const { prototype: pool } = poolModule as { prototype: BrokerPool };
const { connect } = cluster;
const { connect: connectPool, connectBroker, disconnect, refreshMetadataIfNecessary } = pool;
/** Those whose client has been disconnected, and not connected again. */
const disconnected = new WeakSet<BrokerPool>();
const notConnected = () => refused('the client has been disconnected');

/**
 * A request that kafkajs 2.2.4 prepares while its client is disconnected, such as a fetch of a consumer that stops, opens another connection. Nothing
 * closes it until the broker does, after ten minutes, in which a command does not end. With this, the request fails.
 */
pool.disconnect = function (this: BrokerPool): Promise<void> {
  disconnected.add(this);
  return disconnect.call(this);
};
pool.connect = function (this: BrokerPool): Promise<void> {
  return disconnected.has(this) ? notConnected() : connectPool.call(this);
};
pool.connectBroker = function (this: BrokerPool, broker: { isConnected(): boolean }): Promise<void> {
  return disconnected.has(this) ? notConnected() : connectBroker.call(this, broker);
};
cluster.connect = function (this: { brokerPool: BrokerPool }): Promise<void> {
  disconnected.delete(this.brokerPool);
  return connect.call(this as typeof cluster);
};

/** After the clock was set back, kafkajs 2.2.4 would keep its metadata, and notice no new partition, until the clock has caught up. */
pool.refreshMetadataIfNecessary = function (this: BrokerPool, topics: string[]): Promise<void> {
  if ((this.metadataExpireAt ?? 0) > Date.now() + this.metadataMaxAge) this.metadataExpireAt = null;
  return refreshMetadataIfNecessary.call(this, topics);
};

interface PendingRequest {
  entry: { apiName: string };
  /** As from Date.now(). */
  sentAt: number;
  /** In ms. */
  requestTimeout: number;
  timeoutRequest(): void;
}

/** The parts of kafkajs' queue of requests (one per connection) that wait. */
interface RequestQueue {
  enforceRequestTimeout: boolean;
  /** Until then the broker accepts no requests, because of a quota; as from Date.now(). */
  throttledUntil: number;
  isConnected(): boolean;
  pending: PendingRequest[];
  /** By correlation id. */
  inflight: Map<number, PendingRequest>;
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
  scheduleRequestTimeoutCheck(): void;
  waitForPendingRequests(): Promise<void>;
  rejectAll(error: Error): void;
  destroy(): void;
}

const { prototype: queue } = queueModule as { prototype: RequestQueue };
const schedule = queue.scheduleCheckPendingRequests;
const wait = queue.waitForPendingRequests;

/**
 * Without this, each connection of kafkajs 2.2.4 wakes the process every millisecond from its first response on: it looks for waiting requests and
 * schedules the next look although there are none. A request that has to wait schedules one itself.
 */
queue.scheduleCheckPendingRequests = function (this: RequestQueue): void {
  if (this.pending.length > 0) schedule.call(this);
};

/**
 * kafkajs 2.2.4 waits for the response to a fetch before it closes the connection, although its consumer has stopped, or the cluster has lost the broker. With
 * this, the fetches fail: the consumer waits for each of them before it continues with the other brokers.
 */
queue.waitForPendingRequests = function (this: RequestQueue): Promise<void> {
  const isFetching = ({ entry }: PendingRequest) => entry.apiName === 'Fetch';
  if (![...this.pending, ...this.inflight.values()].every(isFetching)) return wait.call(this);
  this.rejectAll(new kafkajs.KafkaJSConnectionError('Closed connection'));
  return Promise.resolve();
};

const { destroy } = queue;
/** The queues of open connections. */
const open = new Set<RequestQueue>();
let endTimeoutCheck: (() => void) | undefined;
/** As from Date.now(). */
let lookedAt = 0;

/**
 * kafkajs 2.2.4 looks ten times per second, with a timer for each connection, whether a request has exceeded its time limit, also while there are none. A
 * service has about ten connections. With this, one timer looks at all of them, once per second.
 */
queue.scheduleRequestTimeoutCheck = function (this: RequestQueue): void {
  if (!this.enforceRequestTimeout) return;
  open.add(this);
  endTimeoutCheck ??= eachSecond(endLateRequests);
};

queue.destroy = function (this: RequestQueue): void {
  destroy.call(this);
  open.delete(this);
  if (open.size > 0) return;
  endTimeoutCheck?.();
  endTimeoutCheck = undefined;
};

function endLateRequests(): void {
  const now = Date.now();
  const wasSetBack = now < lookedAt;
  lookedAt = now;
  for (const each of open) {
    if (wasSetBack) waitAgain(each, now);
    for (const request of each.inflight.values()) if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
    if (!each.isConnected()) each.destroy();
  }
}

/** The clock was set back: until it has caught up, no request of the connection would be late, and those that wait for a quota would not be sent. */
function waitAgain(connection: RequestQueue, now: number): void {
  for (const request of connection.inflight.values()) request.sentAt = Math.min(request.sentAt, now);
  connection.throttledUntil = Math.min(connection.throttledUntil, now);
  connection.checkPendingRequests();
}

/** Responses to fetches, in the version that kafkajs uses with every broker since Kafka 2.3. */
const fetchResponse = responseModule as { decode: typeof decodeFetchResponse };
fetchResponse.decode = decodeFetchResponse;

/** A buffer that grows while a request is encoded. */
interface Encoder {
  buf: Buffer;
  offset: number;
  ensureAvailable(bytes: number): void;
  writeUVarInt(value: number): Encoder;
}

const encoding = encoderModule as { prototype: Encoder; nextPowerOfTwo(value: number): number };
const { nextPowerOfTwo } = encoding;
/** The bytes that kafkajs reserves for an encoder whose size it does not know. */
const UNKNOWN_SIZE = 511;
/** Enough for most headers of a record. */
const FIRST_BYTES = 128;

/**
 * kafkajs 2.2.4 has an encoder for each header of each record, and for each it allocates 512 zeroed bytes outside of the heap, which cost more than what
 * is written into them: a thousand small events blocked the main thread for more than ten milliseconds. With this, an encoder begins empty and takes its
 * memory from Node's pool. All of it that is read has been written before.
 */
encoding.nextPowerOfTwo = (value) => (value === UNKNOWN_SIZE ? 0 : nextPowerOfTwo(value));

encoding.prototype.ensureAvailable = function (this: Encoder, bytes: number): void {
  const size = this.offset + bytes;
  if (size <= this.buf.length) return;
  const grown = Buffer.allocUnsafe(Math.max(FIRST_BYTES, nextPowerOfTwo(size)));
  this.buf.copy(grown, 0, 0, this.offset);
  this.buf = grown;
};

/** kafkajs 2.2.4 creates an array and a buffer for each of these numbers. */
encoding.prototype.writeUVarInt = function (this: Encoder, value: number): Encoder {
  // 32 bits, 7 in each byte
  this.ensureAvailable(5);
  let rest = value;
  for (; (rest & ~0x7f) !== 0; rest >>>= 7) this.buf[this.offset++] = (rest & 0x7f) | 0x80;
  this.buf[this.offset++] = rest;
  return this;
};
