import { loadKafkajs } from '../stores/kafka-ready.mjs';

/**
 * The names of all topics of a broker, as one text.
 * @param {string} brokers "host:port,…"
 */
export async function topicsOf(brokers) {
  const kafkajs = await loadKafkajs();
  const admin = new kafkajs.Kafka({ clientId: 'sluice-attack', brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  const topics = await admin.listTopics();
  await admin.disconnect();
  return topics.sort().join();
}
