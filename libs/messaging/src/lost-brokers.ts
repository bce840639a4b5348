import kafkajs from 'kafkajs';
import poolModule from 'kafkajs/src/cluster/brokerPool.js';
import clusterModule from 'kafkajs/src/cluster/index.js';
import queueModule from 'kafkajs/src/network/requestQueue/index.js';
import { eachSecond } from './each-second.js';

/**
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

interface RequestQueue {
  /** By correlation id; `sentAt` as from Date.now(). */
  inflight: Map<number, { sentAt: number; entry: { apiName: string } }>;
  waitForPendingRequests(): Promise<void>;
  rejectAll(error: Error): void;
}

interface Broker extends Address {
  connectionPool: Address['connectionPool'] & { pool: { requestQueue: RequestQueue }[] };
  isConnected(): boolean;
}

/** Identifies a broker. */
export interface Address {
  nodeId: string | number | null;
  connectionPool: { host: string; port: number };
}

interface Metadata {
  brokers: { nodeId: number; host: string; port: number }[];
}

interface BrokerPool {
  /** null: none since the client has connected. */
  metadata: Metadata | null;
  /** By node id. */
  brokers: Record<string, Broker>;
  /** The one of the configured addresses that the client has connected to; with the metadata, it may be one of `brokers`. */
  seedBroker: Broker | undefined;
  refreshMetadata(topics: string[]): Promise<void>;
  findConnectedBroker(): Promise<Broker>;
  findBroker(broker: { nodeId: string }): Promise<Broker>;
}

export interface Cluster {
  brokerPool: BrokerPool;
  targetTopics: Set<string>;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

const { prototype: cluster } = clusterModule as { prototype: Cluster };
const { prototype: pool } = poolModule as { prototype: BrokerPool };
const { prototype: queue } = queueModule as { prototype: RequestQueue };
const { connect, disconnect } = cluster;
const { findConnectedBroker } = pool;
const { waitForPendingRequests } = queue;

/** The connected clients, and when each last requested metadata because a broker was late; as from performance.now(). */
const connected = new Map<Cluster, number>();
let endWatch: (() => void) | undefined;

cluster.connect = function (this: Cluster): Promise<void> {
  if (!connected.has(this)) connected.set(this, -Infinity);
  endWatch ??= eachSecond(watch);
  return connect.call(this);
};

cluster.disconnect = async function (this: Cluster): Promise<void> {
  connected.delete(this);
  if (connected.size === 0) {
    endWatch?.();
    endWatch = undefined;
  }
  await disconnect.call(this);
};

/** kafkajs 2.2.4 takes any broker to which it is connected. */
pool.findConnectedBroker = function (this: BrokerPool): Promise<Broker> {
  const other = Object.entries(this.brokers).find(([, broker]) => broker.isConnected() && !isLate(broker));
  return other && Object.values(this.brokers).some(isLate) ? this.findBroker({ nodeId: other[0] }) : findConnectedBroker.call(this);
};

/** kafkajs 2.2.4 waits for the responses of a broker that the cluster has lost before it uses the new metadata. */
queue.waitForPendingRequests = function (this: RequestQueue): Promise<void> {
  if (isQueueLate(this)) this.rejectAll(notResponding());
  return waitForPendingRequests.call(this);
};

/** Whether the cluster has lost the broker, or has another one in its place, according to the latest metadata. */
export function isLost({ nodeId, connectionPool: { host, port } }: Address, { brokerPool: { metadata } }: Cluster): boolean {
  const isIt = (each: Metadata['brokers'][number]) => `${each.nodeId}` === `${nodeId}` && each.host === host && each.port === port;
  return metadata !== null && !metadata.brokers.some(isIt);
}

const notResponding = (): Error => new kafkajs.KafkaJSConnectionError('The broker does not respond');

function watch(): void {
  const now = performance.now();
  for (const [each, askedAt] of connected) {
    const { brokers, seedBroker } = each.brokerPool;
    const known = Object.values(brokers);
    for (const broker of new Set(seedBroker ? [...known, seedBroker] : known)) endLateGreetings(broker);
    if (known.length < 2 || now - askedAt < PAUSE_MS || !known.some(isLate)) continue;
    connected.set(each, now);
    // not as kafkajs itself does: it would wait for a request for metadata in progress, which the late broker may have
    void each.brokerPool.refreshMetadata([...each.targetTopics]).catch(() => {});
  }
}

/** Fails the first requests of a connection that are late: the next attempt takes another broker. */
function endLateGreetings({ connectionPool }: Broker): void {
  const now = Date.now();
  for (const { requestQueue } of connectionPool.pool) {
    const isGreetingLate = [...requestQueue.inflight.values()].some(
      ({ entry, sentAt }) => GREETINGS.has(entry.apiName) && now - sentAt > LATE_MS,
    );
    if (isGreetingLate) requestQueue.rejectAll(notResponding());
  }
}

const isLate = ({ connectionPool }: Broker): boolean => connectionPool.pool.some(({ requestQueue }) => isQueueLate(requestQueue));

function isQueueLate({ inflight }: RequestQueue): boolean {
  const latest = Date.now() - LATE_MS;
  for (const { sentAt } of inflight.values()) if (sentAt < latest) return true;
  return false;
}
