import type { Kafka } from 'kafkajs';
import type { TopicSpec } from '#contracts';

/** Makes the topics that are missing; leaves those that exist as they are. Returns the names of the new ones. */
export async function createTopics(
  kafka: Kafka,
  specs: TopicSpec[],
  { partitions, replicas }: { partitions: number; replicas: number },
): Promise<string[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ topic }) => !existing.has(topic));
    if (missing.length === 0) return [];
    await admin.createTopics({
      waitForLeaders: true,
      timeout: 30_000,
      topics: missing.map((spec) => ({
        topic: spec.topic,
        numPartitions: spec.partitions === 'one' ? 1 : partitions,
        replicationFactor: replicas,
        configEntries: Object.entries(spec.config ?? {}).map(([name, value]) => ({ name, value })),
      })),
    });
    return missing.map(({ topic }) => topic);
  } finally {
    await admin.disconnect();
  }
}
