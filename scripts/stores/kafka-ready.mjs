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

/** Imported late: at the very first start it is not yet installed when this file is loaded. */
export async function loadKafkajs() {
  const { emitWarning } = process;
  // kafkajs sets timers into the past, harmlessly, and Node 24 warns each time.
  process.emitWarning = (/** @type {any[]} */ ...args) =>
    args[1] === 'TimeoutNegativeWarning' ? undefined : Reflect.apply(emitWarning, process, args);
  return (await import('kafkajs')).default;
}
