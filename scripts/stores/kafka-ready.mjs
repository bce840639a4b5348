import { setTimeout as sleep } from 'node:timers/promises';

/** @type {typeof import('kafkajs') | undefined} */
let kafkajs;

/**
 * Whether a cluster responds and its partitions have leaders.
 *
 * @param {string} brokers "host:port,…"
 * @param {{ groups?: boolean, client?: import('./broker.mjs').BrokerSecurity['client'] }} [options] `groups`: also wait until it can coordinate consumer groups, which takes a new broker a second longer; a
 *   consumer that starts before that logs errors
 */
export async function isKafkaReady(brokers, { groups = false, client = {} } = {}) {
  kafkajs ??= await loadKafkajs();
  const { Kafka, logLevel } = kafkajs;
  const kafka = new Kafka({
    ...client,
    brokers: brokers.split(','),
    clientId: 'sluice-start',
    logLevel: logLevel.NOTHING,
    connectionTimeout: 3000,
    requestTimeout: 10_000,
    retry: { retries: 0 },
  });
  const admin = kafka.admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (groups) await admin.describeGroups(['sluice-start']);
    return cluster.brokers.length > 0 && cluster.controller !== null;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

const OFFSETS_TOPIC = '__consumer_offsets';
const JOINS_WITHIN_MS = 10_000;

/**
 * Whether a consumer can join a group, which the broker must store.
 *
 * After it was killed, a broker of Kafka 4.1.1 can reach a state in which it responds, but fails at everything that it has to store for groups, until it is
 * started again. Its log suggests that it was elected for the topic of the groups a second time while it still read it for the first one.
 *
 * @param {string} brokers "host:port,…"
 * @param {import('./broker.mjs').BrokerSecurity['client']} [client]
 */
export async function storesGroups(brokers, client = {}) {
  kafkajs ??= await loadKafkajs();
  const { Kafka, logLevel } = kafkajs;
  const kafka = new Kafka({ ...client, brokers: brokers.split(','), clientId: 'sluice-start', logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: 'sluice-start', maxWaitTimeInMs: 100, retry: { retries: 0 } });
  const admin = kafka.admin({ retry: { retries: 0 } });
  const join = async () => {
    await Promise.all([consumer.connect(), admin.connect()]);
    await consumer.subscribe({ topics: [OFFSETS_TOPIC] });
    await consumer.run({ autoCommit: false, eachBatch: async () => {} });
    return true;
  };
  const joined = join().catch(() => false);
  const isStored = await Promise.race([joined, sleep(JOINS_WITHIN_MS, false, { ref: false })]);
  await consumer.disconnect().catch(() => {});
  if (isStored) await admin.deleteGroups(['sluice-start']).catch(() => {});
  await admin.disconnect().catch(() => {});
  return isStored;
}

/**
 * Keeps the topic of the consumer groups short: a broker reads all of it at its start, and it is compacted in segments.
 * @param {string} brokers "host:port,…"
 * @param {string} segmentBytes
 * @param {import('./broker.mjs').BrokerSecurity['client']} [client]
 */
export async function limitOffsetsTopic(brokers, segmentBytes, client = {}) {
  kafkajs ??= await loadKafkajs();
  const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;
  const kafka = new Kafka({ ...client, brokers: brokers.split(','), clientId: 'sluice-start', logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
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
