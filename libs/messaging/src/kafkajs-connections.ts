import kafkajs from 'kafkajs';
import poolModule from 'kafkajs/src/cluster/brokerPool.js';
import clusterModule from 'kafkajs/src/cluster/index.js';
import connectionModule from 'kafkajs/src/network/connection.js';
import queueModule from 'kafkajs/src/network/requestQueue/index.js';
import type { Socket } from 'node:net';
import { eachSecond } from './each-second.js';

/** Identifies a broker. */
export interface Address {
  nodeId: string | number | null;
  connectionPool: { host: string; port: number };
}

interface Broker extends Address {
  connectionPool: Address['connectionPool'] & { pool: { requestQueue: RequestQueue }[] };
  isConnected(): boolean;
}

interface Metadata {
  brokers: { nodeId: number; host: string; port: number }[];
}

/** The connections of a client, one for each broker. */
interface BrokerPool {
  /** null: none since the client has connected. */
  metadata: Metadata | null;
  /** As from Date.now(); null: the metadata are out of date. */
  metadataExpireAt: number | null;
  /** In ms. */
  metadataMaxAge: number;
  /** By node id. */
  brokers: Record<string, Broker>;
  connect(): Promise<void>;
  connectBroker(broker: Broker): Promise<void>;
  refreshMetadata(topics: string[]): Promise<void>;
  refreshMetadataIfNecessary(topics: string[]): Promise<void>;
  findConnectedBroker(): Promise<Broker>;
  findBroker(broker: { nodeId: string }): Promise<Broker>;
}

/** The brokers, as a client knows them. */
export interface Cluster {
  brokerPool: BrokerPool;
  targetTopics: Set<string>;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

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

/** One connection after the other to a broker. */
interface Connection {
  /** The latest one. */
  socket?: Socket;
  /** The beginning of the next response, and how many of its bytes must have arrived before it is looked at again. */
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
  /** While it authenticates: what the next bytes are for. */
  authHandlers: { onError(): void } | null;
  isConnected(): boolean;
  connect(): Promise<boolean>;
  disconnect(): Promise<boolean>;
}

/** The bytes in which a response has its size. */
const SIZE_BYTES = 4;

const { prototype: cluster } = clusterModule as { prototype: Cluster };
const { prototype: pool } = poolModule as { prototype: BrokerPool };
const { prototype: queue } = queueModule as { prototype: RequestQueue };
const { prototype: connection } = connectionModule as { prototype: Connection };
const { connect, disconnect } = cluster;
const { connect: connectPool, connectBroker, findConnectedBroker, refreshMetadataIfNecessary } = pool;
const { connect: openConnection, disconnect: closeConnection } = connection;
const { scheduleCheckPendingRequests, waitForPendingRequests, destroy } = queue;

/** The connected clients, and when each last requested metadata because a broker was late; as from performance.now(). */
const connected = new Map<Cluster, number>();
/** The connections of clients that have been disconnected, and not connected again: a pool does not know its client. */
const disconnected = new WeakSet<BrokerPool>();
/** The connections that are being opened. */
const connecting = new WeakMap<Connection, Promise<boolean>>();
/** The queues of open connections. */
const open = new Set<RequestQueue>();
let endLooks: (() => void) | undefined;
/** As from Date.now(). */
let lookedAt = 0;

/*
 * A request that kafkajs 2.2.4 prepares while its client is disconnected, such as a fetch of a consumer that stops, opens another connection. Nothing
 * closes it until the broker does, after ten minutes, in which a command does not end. With this, the request fails.
 */
cluster.connect = function (this: Cluster): Promise<void> {
  disconnected.delete(this.brokerPool);
  if (!connected.has(this)) connected.set(this, -Infinity);
  endLooks ??= eachSecond(look);
  return connect.call(this);
};
cluster.disconnect = async function (this: Cluster): Promise<void> {
  disconnected.add(this.brokerPool);
  connected.delete(this);
  endLooksIfIdle();
  await disconnect.call(this);
};
pool.connect = function (this: BrokerPool): Promise<void> {
  return disconnected.has(this) ? notConnected() : connectPool.call(this);
};
pool.connectBroker = function (this: BrokerPool, broker: Broker): Promise<void> {
  return disconnected.has(this) ? notConnected() : connectBroker.call(this, broker);
};

const notConnected = () => Promise.reject(new kafkajs.KafkaJSNonRetriableError('the client has been disconnected'));

/**
 * If several requests need a connection at the same time, kafkajs 2.2.4 opens one for each, and uses the last. When the broker ends another one, which is idle,
 * the last one is closed. With this, they share one.
 */
connection.connect = function (this: Connection): Promise<boolean> {
  if (this.isConnected()) return Promise.resolve(true);
  let opening = connecting.get(this);
  if (!opening) {
    beginEmpty(this);
    opening = openConnection.call(this).finally(() => {
      if (connecting.get(this) === opening) connecting.delete(this);
    });
    connecting.set(this, opening);
  }
  return opening;
};

/**
 * If a connection ends in the middle of a response, kafkajs 2.2.4 takes the responses of all later ones to that broker for the rest of it: the client gets no
 * response any more. The same holds for what is left of an authentication. With this, each connection begins with nothing.
 */
function beginEmpty(to: Connection): void {
  to.socket?.removeAllListeners('data');
  to.authHandlers?.onError();
  to.chunks = [];
  to.bytesBuffered = 0;
  to.bytesNeeded = SIZE_BYTES;
}

/** kafkajs 2.2.4 lets the broker end the connection: if a new one has begun before, that one is closed. */
connection.disconnect = async function (this: Connection): Promise<boolean> {
  const { socket } = this;
  // it may not have been opened yet, and kafkajs reports that only at a time limit, if at all
  connecting.delete(this);
  await closeConnection.call(this);
  socket?.destroy();
  return true;
};

/** After the clock was set back, kafkajs 2.2.4 would keep its metadata, and notice no new partition, until the clock has caught up. */
pool.refreshMetadataIfNecessary = function (this: BrokerPool, topics: string[]): Promise<void> {
  if ((this.metadataExpireAt ?? 0) > Date.now() + this.metadataMaxAge) this.metadataExpireAt = null;
  return refreshMetadataIfNecessary.call(this, topics);
};

/**
 * Without this, each connection of kafkajs 2.2.4 wakes the process every millisecond from its first response on: it looks for waiting requests and
 * schedules the next look although there are none. A request that has to wait schedules one itself.
 */
queue.scheduleCheckPendingRequests = function (this: RequestQueue): void {
  if (this.pending.length > 0) scheduleCheckPendingRequests.call(this);
};

/**
 * kafkajs 2.2.4 looks ten times per second, with a timer for each connection, whether a request has exceeded its time limit, also while there are none. A
 * service has about ten connections. With this, one timer looks at all of them, once per second.
 */
queue.scheduleRequestTimeoutCheck = function (this: RequestQueue): void {
  if (!this.enforceRequestTimeout) return;
  open.add(this);
  endLooks ??= eachSecond(look);
};

/** Without this, a request that was sent while kafkajs 2.2.4 was closing the connection gets neither a response nor a timeout. */
queue.destroy = function (this: RequestQueue): void {
  destroy.call(this);
  this.rejectAll(closed());
  open.delete(this);
  endLooksIfIdle();
};

/**
 * Before kafkajs 2.2.4 closes a connection, it waits for the response to a fetch, even if the consumer has stopped or the cluster has lost the broker. Before
 * it uses new metadata, it waits for all responses of a lost broker. With this, these requests fail. The consumer would otherwise wait for each fetch before it
 * continues with the other brokers.
 */
queue.waitForPendingRequests = function (this: RequestQueue): Promise<void> {
  const isFetching = [...this.pending, ...this.inflight.values()].every(({ entry }) => entry.apiName === 'Fetch');
  if (isFetching) this.rejectAll(closed());
  else if (isQueueLate(this)) this.rejectAll(notResponding());
  return waitForPendingRequests.call(this);
};

function endLooksIfIdle(): void {
  if (open.size + connected.size > 0) return;
  endLooks?.();
  endLooks = undefined;
}

function look(): void {
  const now = Date.now();
  const wasSetBack = now < lookedAt;
  lookedAt = now;
  for (const each of open) {
    if (wasSetBack) waitAgain(each, now);
    endLateRequests(each, now);
  }
  for (const [client, askedAt] of connected) askOthers(client, askedAt);
}

/** The clock was set back: until it has caught up, no request of the connection would be late, and those that wait for a quota would not be sent. */
function waitAgain(connection: RequestQueue, now: number): void {
  for (const request of connection.inflight.values()) request.sentAt = Math.min(request.sentAt, now);
  connection.throttledUntil = Math.min(connection.throttledUntil, now);
  connection.checkPendingRequests();
}

function endLateRequests(connection: RequestQueue, now: number): void {
  const requests = [...connection.inflight.values()];
  // the next attempt takes another broker
  if (requests.some(({ entry, sentAt }) => GREETINGS.has(entry.apiName) && now - sentAt > LATE_MS)) connection.rejectAll(notResponding());
  else for (const request of requests) if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
  if (!connection.isConnected()) connection.destroy();
}

/*
 * A broker that is frozen, or whose machine has gone, keeps its connections: kafkajs 2.2.4 waits 30 s for each response, asks the broker again, and may even ask
 * it for the metadata that show its replacement. With this, a client asks the other brokers as soon as one is late:
 *
 *   a response is late ──► metadata from a broker that is not late
 *     ├─ they have the late broker ──► wait, and ask again
 *     └─ the cluster has lost it   ──► its requests fail; kafkajs repeats them to the new leaders
 *
 * The cluster itself loses a broker after `broker.session.timeout.ms`, by default 9 s.
 */

/** A response after this time, in ms, is late. Longer than the wait of a fetch for data, but not than that of a member that joins a group for the others. */
const LATE_MS = 6000;
/** Those before any other request of a connection. */
const GREETINGS: ReadonlySet<string> = new Set(['ApiVersions', 'SaslHandshake', 'SaslAuthenticate']);
/** Between two requests for metadata while a broker is late, in ms. */
const PAUSE_MS = 3000;

function askOthers(client: Cluster, askedAt: number): void {
  const brokers = Object.values(client.brokerPool.brokers);
  const now = performance.now();
  if (brokers.length < 2 || now - askedAt < PAUSE_MS || !brokers.some(isLate)) return;
  connected.set(client, now);
  // not as kafkajs itself does: it would wait for a request for metadata in progress, which the late broker may have
  void client.brokerPool.refreshMetadata([...client.targetTopics]).catch(() => {});
}

/** kafkajs 2.2.4 takes any broker to which it is connected. */
pool.findConnectedBroker = function (this: BrokerPool): Promise<Broker> {
  const other = Object.entries(this.brokers).find(([, broker]) => broker.isConnected() && !isLate(broker));
  return other && Object.values(this.brokers).some(isLate) ? this.findBroker({ nodeId: other[0] }) : findConnectedBroker.call(this);
};

/** Whether the cluster has lost the broker, or has another one in its place, according to the latest metadata. */
export function isLost({ nodeId, connectionPool: { host, port } }: Address, { brokerPool: { metadata } }: Cluster): boolean {
  const isIt = (each: Metadata['brokers'][number]) => `${each.nodeId}` === `${nodeId}` && each.host === host && each.port === port;
  return metadata !== null && !metadata.brokers.some(isIt);
}

const isLate = ({ connectionPool }: Broker): boolean => connectionPool.pool.some(({ requestQueue }) => isQueueLate(requestQueue));

function isQueueLate({ inflight }: RequestQueue): boolean {
  const latest = Date.now() - LATE_MS;
  for (const { sentAt } of inflight.values()) if (sentAt < latest) return true;
  return false;
}

const closed = (): Error => new kafkajs.KafkaJSConnectionError('Closed connection');
const notResponding = (): Error => new kafkajs.KafkaJSConnectionError('The broker does not respond');
