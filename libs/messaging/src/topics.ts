import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs, { type Admin, type ConfigEntries, type IResourceConfigEntry, type ITopicMetadata } from 'kafkajs';
import type { TopicSpec } from '#contracts';
import type { KafkaClient } from './kafka.js';

/** The settings for creating topics, in addition to their specifications. */
export interface TopicSettings {
  partitions: number;
  replicas: number;
  minInSyncReplicas: number;
}

/** How the existing topics differ from the requirements. Each entry is a sentence that begins with the topic's name. */
interface TopicReport {
  /** Names of topics that do not exist, or that we are not allowed to see. */
  missing: string[];
  /** Differences with which the service cannot work correctly. */
  wrong: string[];
  /** Differences from the configuration with which the service works. */
  different: string[];
}

/** The error message for topics with which a service cannot work correctly. */
export const wrongTopics = (wrong: TopicReport['wrong']): string => `Kafka's topics are not as needed: ${wrong.join('; ')}`;

const CREATED_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 100;
/** Of topics that exist, while a broker does not know them or has not elected a leader. */
const NOT_THERE_YET = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE']);

/** Creates the missing topics and leaves existing ones unchanged. Returns the names of the new ones. */
export async function createTopics(kafka: Pick<KafkaClient, 'withAdmin'>, specs: TopicSpec[], settings: TopicSettings): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ topic }) => !existing.has(topic));
    if (missing.length === 0) return [];
    await admin.createTopics({
      // kafkajs's own wait fails if the broker that it asks does not know a topic yet
      waitForLeaders: false,
      timeout: CREATED_WITHIN_MS,
      topics: missing.map((spec) => ({
        topic: spec.topic,
        numPartitions: spec.partitions === 'one' ? 1 : settings.partitions,
        replicationFactor: settings.replicas,
        configEntries: Object.entries({ 'min.insync.replicas': String(settings.minInSyncReplicas), ...spec.config }).map(
          ([name, value]) => ({
            name,
            value,
          }),
        ),
      })),
    });
    const topics = missing.map(({ topic }) => topic);
    await untilLed(admin, topics);
    return topics;
  });
}

/** Resolves when each partition has a leader. */
async function untilLed(admin: Pick<Admin, 'fetchTopicMetadata'>, topics: string[]): Promise<void> {
  for (const end = performance.now() + CREATED_WITHIN_MS; ; await sleep(LOOK_EVERY_MS)) {
    try {
      return void (await admin.fetchTopicMetadata({ topics }));
    } catch (error) {
      if (!NOT_THERE_YET.has((error as { type?: string }).type ?? '') || performance.now() > end) throw error;
    }
  }
}

/**
 * Limits the size of existing topics that have no limit, and the time of their segments: those of earlier versions. A limit that an operator has set stays.
 * Returns the names of the changed topics.
 */
export async function limitTopics(kafka: KafkaClient, specs: TopicSpec[]): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const existing = new Set(await admin.listTopics());
    const limited = specs.filter(
      ({ topic, config = {} }) => ('retention.bytes' in config || 'segment.ms' in config) && existing.has(topic),
    );
    if (limited.length === 0) return [];
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: limited.map(({ topic }) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic })),
    });
    const changed = limited.flatMap(({ topic, config }) => {
      const entries = resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? [];
      const configEntries = limitedSettings(config, entries);
      return configEntries ? [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }] : [];
    });
    if (changed.length > 0) await admin.alterConfigs({ validateOnly: false, resources: changed });
    return changed.map(({ name }) => name);
  });
}

/**
 * All settings of a topic with the limits that it does not have; undefined if it has all of them. kafkajs can only replace all settings of a topic at once,
 * so its other ones are among them.
 * @param actual the settings that apply, also those of the broker
 */
export function limitedSettings(
  config: TopicSpec['config'] = {},
  actual: Pick<ConfigEntries, 'configName' | 'configValue' | 'configSource'>[],
): IResourceConfigEntry[] | undefined {
  const values = new Map(actual.map(({ configName, configValue }) => [configName, configValue]));
  const own = actual.filter(({ configSource }) => configSource === kafkajs.ConfigSource.TOPIC_CONFIG);
  const settings = new Map(own.map(({ configName, configValue }) => [configName, configValue]));
  const limits: string[] = [];
  if (values.get('retention.bytes') === UNLIMITED) limits.push('retention.bytes', 'segment.bytes');
  if (!settings.has('segment.ms') && hasLongSegments(config, values)) limits.push('segment.ms');
  const missing = limits.filter((name) => config[name] !== undefined);
  if (missing.length === 0) return undefined;
  for (const name of missing) settings.set(name, config[name]!);
  return [...settings].map(([name, value]) => ({ name, value }));
}

/** Kafka deletes a segment when its newest record is old enough. */
const hasLongSegments = (config: TopicSpec['config'] = {}, actual: ReadonlyMap<string, string>): boolean =>
  Number(actual.get('segment.ms')) > Number(config['segment.ms']);

const UNLIMITED = '-1';

/** Compares the existing topics with the requirements. */
export async function checkTopics(kafka: KafkaClient, specs: TopicSpec[], settings: TopicSettings): Promise<TopicReport> {
  return kafka.withAdmin(async (admin) => {
    const existing = new Set(await admin.listTopics());
    const [present, missing] = [specs.filter(({ topic }) => existing.has(topic)), specs.filter(({ topic }) => !existing.has(topic))];
    const report: TopicReport = { missing: missing.map(({ topic }) => topic), wrong: [], different: [] };
    if (present.length === 0) return report;
    const names = present.map(({ topic }) => topic);
    const { topics } = await admin.fetchTopicMetadata({ topics: names });
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: names.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: COMPARED })),
    });
    for (const spec of present) {
      const metadata = topics.find(({ name }) => name === spec.topic);
      const entries = resources.find(({ resourceName }) => resourceName === spec.topic)?.configEntries ?? [];
      const actual = new Map(entries.map(({ configName, configValue }) => [configName, configValue]));
      const { wrong, different } = differences(spec, settings, metadata, actual);
      report.wrong.push(...wrong);
      report.different.push(...different);
    }
    return report;
  });
}

const COMPARED = [
  'message.timestamp.type',
  'cleanup.policy',
  'max.message.bytes',
  'retention.ms',
  'retention.bytes',
  'segment.ms',
  'min.insync.replicas',
  'compression.type',
];

/** The decision for one topic. actual: its settings as the broker reports them. */
export function differences(
  { topic, partitions, config = {}, isReadOnce }: TopicSpec,
  settings: TopicSettings,
  metadata: Pick<ITopicMetadata, 'partitions'> | undefined,
  actual: ReadonlyMap<string, string>,
): Pick<TopicReport, 'wrong' | 'different'> {
  const wrong: string[] = [];
  const different: string[] = [];
  const set = (name: string, value: string) => `${topic} has ${name}=${actual.get(name)}; set it to ${value}`;

  // event ids are derived from the broker's clock, and a producer's timestamp could be any value
  const timestamps = config['message.timestamp.type'];
  if (timestamps !== undefined && actual.get('message.timestamp.type') !== timestamps)
    wrong.push(set('message.timestamp.type', timestamps));
  const policy = config['cleanup.policy'] ?? 'delete';
  if (actual.has('cleanup.policy') && actual.get('cleanup.policy') !== policy) wrong.push(set('cleanup.policy', policy));
  const bytes = config['max.message.bytes'];
  if (bytes !== undefined && Number(actual.get('max.message.bytes')) < Number(bytes)) wrong.push(set('max.message.bytes', bytes));

  const retention = config['retention.ms'];
  const kept = Number(actual.get('retention.ms') ?? -1);
  if (retention !== undefined && kept >= 0 && kept < Number(retention)) different.push(set('retention.ms', `at least ${retention}`));
  if (retention !== undefined && isReadOnce && actual.has('retention.ms') && (kept < 0 || kept > Number(retention)))
    different.push(
      `${set('retention.ms', retention)}, because older records would be handled again if the topic is read from its beginning`,
    );
  if (hasLongSegments(config, actual))
    different.push(
      `${set('segment.ms', config['segment.ms']!)}, because Kafka keeps a record until the newest one of its segment is older than retention.ms`,
    );
  const size = config['retention.bytes'];
  if (size !== undefined && actual.get('retention.bytes') === UNLIMITED)
    different.push(`${set('retention.bytes', size)}, as \`sluice migrate\` does, because large replies could fill the disk of the brokers`);
  if (Number(actual.get('min.insync.replicas') ?? settings.minInSyncReplicas) < settings.minInSyncReplicas)
    different.push(set('min.insync.replicas', String(settings.minInSyncReplicas)));
  const compression = config['compression.type'];
  if (compression !== undefined && actual.has('compression.type') && actual.get('compression.type') !== compression)
    different.push(`${set('compression.type', compression)}, because a batch in a codec that Sluice cannot read would stop its consumers`);
  const wanted = partitions === 'one' ? 1 : settings.partitions;
  const count = metadata?.partitions.length ?? wanted;
  if (count !== wanted && partitions !== 'one')
    different.push(`${topic} has ${count} partitions, and SLUICE_PARTITIONS is ${wanted}; the topic's number is used`);
  const replicas = Math.min(...(metadata?.partitions.map((partition) => partition.replicas.length) ?? [settings.replicas]));
  if (replicas < settings.replicas)
    different.push(`${topic} has ${replicas} replicas, and SLUICE_REPLICATION_FACTOR is ${settings.replicas}`);
  return { wrong, different };
}
