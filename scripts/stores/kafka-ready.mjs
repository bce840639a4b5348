import { setTimeout as sleep } from 'node:timers/promises';

/** @type {typeof import('kafkajs') | undefined} */
let kafkajs;

/** @typedef {import('./broker.mjs').BrokerSecurity['client']} Login */

const GROUP = 'sluice-start';
const OFFSETS_TOPIC = '__consumer_offsets';
const JOINS_WITHIN_MS = 10_000;

/** A client that does not retry. @param {string} brokers "host:port,…" @param {Login} [login] */
async function clientOf(brokers, login = {}) {
  kafkajs ??= await loadKafkajs();
  return new kafkajs.Kafka({
    ...login,
    brokers: brokers.split(','),
    clientId: 'sluice-start',
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 3000,
    requestTimeout: 10_000,
    retry: { retries: 0 },
  });
}

/**
 * Whether a cluster responds, its partitions have leaders, and it coordinates consumer groups, which takes a new broker a second longer.
 *
 * @param {string} brokers "host:port,…"
 * @param {Login} [login]
 */
export async function isKafkaReady(brokers, login) {
  const admin = (await clientOf(brokers, login)).admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    await admin.describeGroups([GROUP]);
    return cluster.brokers.length > 0 && cluster.controller !== null;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

/**
 * Whether a consumer can join a group, which the broker must store.
 *
 * After it was killed, a broker of Kafka 4.1.1 can reach a state in which it responds, but fails at everything that it has to store for groups, until it is
 * started again. Its log suggests that it was elected for the topic of the groups a second time while it still read it for the first one.
 *
 * @param {string} brokers "host:port,…"
 * @param {Login} [login]
 */
export async function storesGroups(brokers, login) {
  const kafka = await clientOf(brokers, login);
  const consumer = kafka.consumer({ groupId: GROUP, maxWaitTimeInMs: 100, retry: { retries: 0 } });
  const admin = kafka.admin();
  const join = async () => {
    await Promise.all([consumer.connect(), admin.connect()]);
    await consumer.subscribe({ topics: [OFFSETS_TOPIC] });
    await consumer.run({ autoCommit: false, eachBatch: async () => {} });
    return true;
  };
  const joined = join().catch(() => false);
  const isStored = await Promise.race([joined, sleep(JOINS_WITHIN_MS, false, { ref: false })]);
  await consumer.disconnect().catch(() => {});
  if (isStored) await admin.deleteGroups([GROUP]).catch(() => {});
  await admin.disconnect().catch(() => {});
  return isStored;
}

/**
 * Keeps the topic of the consumer groups short: a broker reads all of it at its start, and it is compacted in segments.
 * @param {string} brokers "host:port,…"
 * @param {string} segmentBytes
 * @param {Login} [login]
 */
export async function limitOffsetsTopic(brokers, segmentBytes, login) {
  const admin = (await clientOf(brokers, login)).admin({ retry: { retries: 5 } });
  const { ConfigResourceTypes } = await loadKafkajs();
  const resource = { type: ConfigResourceTypes.TOPIC, name: OFFSETS_TOPIC };
  try {
    await admin.connect();
    const [{ configEntries = [] } = {}] = (await admin.describeConfigs({ resources: [resource], includeSynonyms: false })).resources;
    const own = new Map(
      configEntries.filter(({ isDefault }) => !isDefault).map(({ configName, configValue }) => [configName, configValue]),
    );
    if (own.get('segment.bytes') === segmentBytes) return;
    const entries = [...own.set('segment.bytes', segmentBytes)].map(([name, value]) => ({ name, value }));
    await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: entries }] });
  } finally {
    await admin.disconnect();
  }
}

/** Imported late: at the very first start it is not yet installed when this file is loaded. */
export async function loadKafkajs() {
  const { emitWarning } = process;
  // kafkajs sets timers into the past, harmlessly, and Node 24 warns each time.
  process.emitWarning = (/** @type {any[]} */ ...args) =>
    args[1] === 'TimeoutNegativeWarning' ? undefined : Reflect.apply(emitWarning, process, args);
  return (await import('kafkajs')).default;
}
