import { type Fact, type QueuedCommand, type Service, SERVICES } from './contract.js';
import { emitterChanged } from './emitters.js';
import { errorRaised } from './raised-errors.js';
import { executeRun, restoreRun, runFinished } from './runs.js';
import {
  deadLetterTopic,
  EVENTS_TOPIC,
  groupPrefix,
  repliesTopic,
  requestsTopic,
  WORKFLOW_TRIGGERS_TOPIC,
  WORKFLOWS_TOPIC,
} from './topic-names.js';

/** The settings of a topic; absent ones have the broker's default. */
export interface TopicSpec {
  topic: string;
  partitions: 'one' | 'configured';
  config?: Record<string, string>;
  /** Its readers recognise a repeated record for eight days only, so records must not be kept longer than `retention.ms`. */
  isReadOnce?: true;
}

const DAY_MS = 86_400_000;
/** Kafka deletes a segment when its newest record is old enough. By default, a segment has the records of up to a week, so the oldest would be kept for two. */
const WEEK = { 'retention.ms': String(7 * DAY_MS), 'segment.ms': String(DAY_MS / 2) };
/** Kafka has deleted every event, run and fact by then. Until then, their readers must recognise repeats. */
export const RECORDS_GONE_AFTER_DAYS = 8;
const MIB = 1024 * 1024;
const MAX_MESSAGE_BYTES = String(4 * MIB);
const HOUR_MS = 3_600_000;
/**
 * Requests and replies are read at once, and nobody needs them afterwards. An hour of them helps to find a fault. Their size is limited, too: one client
 * that reads pages of large events could fill the disk of the brokers within that hour. Kafka deletes whole segments, so they are small and short. Each
 * costs the broker an open file and two memory maps; a partition has about five.
 */
const CONVERSATION = {
  'retention.ms': String(HOUR_MS),
  'segment.ms': String(HOUR_MS / 4),
  'segment.bytes': String(64 * MIB),
  'max.message.bytes': MAX_MESSAGE_BYTES,
};
/** Of a partition. Few requests of an account are in progress at a time, so hardly any wait here. */
const REQUESTS_BYTES = String(256 * MIB);
/** A minute at 50 MB per second: a caller waits ten seconds for most replies, and at most a minute for code. */
const REPLIES_BYTES = String(3072 * MIB);
/**
 * The broker decompresses what producers outside send. Some compress by default with a codec that our consumers do not have (franz-go: snappy), and one
 * such batch would stop every consumer of the topic.
 */
const ANY_CODEC = { 'compression.type': 'uncompressed' };

/** How long a record without a value, which removes a workflow, is kept: a catalog that was down for longer, or whose restored backup is older, misses it. */
const REMOVALS = { 'delete.retention.ms': String(30 * DAY_MS) };

/** Messages with their own topic, and so with records that newer versions read: `golden/NAME.json` has examples of each, which stay as they are. */
export const messagesWithTopics: readonly (Pick<Fact<object>, 'name' | 'topic' | 'payload' | 'compacted'> | QueuedCommand<object>)[] = [
  emitterChanged,
  executeRun,
  restoreRun,
  runFinished,
  errorRaised,
];

/** All topics. `sluice migrate` creates them; the broker never creates topics automatically. */
export function topicSpecs(): TopicSpec[] {
  return [
    {
      topic: EVENTS_TOPIC,
      partitions: 'configured',
      config: {
        'message.timestamp.type': 'LogAppendTime',
        ...WEEK,
        'max.message.bytes': '2097152',
        ...ANY_CODEC,
      },
    },
    { topic: WORKFLOWS_TOPIC, partitions: 'configured', config: { 'cleanup.policy': 'compact', ...REMOVALS, ...ANY_CODEC } },
    { topic: WORKFLOW_TRIGGERS_TOPIC, partitions: 'configured', config: { ...WEEK, 'max.message.bytes': '2097152' } },
    ...messagesWithTopics.map((message): TopicSpec => {
      const topic = { topic: message.topic, partitions: 'configured' } as const;
      const config = { 'max.message.bytes': MAX_MESSAGE_BYTES };
      if ('compacted' in message && message.compacted) return { ...topic, config: { ...config, 'cleanup.policy': 'compact' } };
      return { ...topic, config: { ...config, ...WEEK }, isReadOnce: true };
    }),
    ...SERVICES.map((service): TopicSpec => ({
      topic: requestsTopic(service),
      partitions: 'configured',
      config: { ...CONVERSATION, 'retention.bytes': REQUESTS_BYTES },
    })),
    ...SERVICES.map((service): TopicSpec => ({
      topic: repliesTopic(service),
      partitions: 'one',
      config: { ...CONVERSATION, 'retention.bytes': REPLIES_BYTES },
    })),
    ...SERVICES.map((service): TopicSpec => ({
      topic: deadLetterTopic(service),
      partitions: 'one',
      config: { ...WEEK, 'max.message.bytes': MAX_MESSAGE_BYTES },
    })),
  ];
}

/** How a service uses Kafka, apart from handling its own requests. */
interface Conversation {
  /** The services that it sends requests to. */
  requests: Service[];
  reads: string[];
  writes: string[];
}

const conversations: Record<Service, Conversation> = {
  gateway: {
    requests: ['catalog', 'routing', 'event-store', 'runtime'],
    reads: [EVENTS_TOPIC, runFinished.topic, errorRaised.topic, emitterChanged.topic],
    writes: [EVENTS_TOPIC, executeRun.topic],
  },
  catalog: {
    requests: ['gateway', 'runtime', 'routing', 'event-store'],
    reads: [WORKFLOWS_TOPIC, emitterChanged.topic],
    writes: [emitterChanged.topic],
  },
  routing: {
    requests: ['catalog', 'event-store', 'runtime'],
    reads: [EVENTS_TOPIC, emitterChanged.topic],
    writes: [EVENTS_TOPIC, WORKFLOW_TRIGGERS_TOPIC, executeRun.topic, errorRaised.topic],
  },
  'event-store': { requests: ['catalog'], reads: [EVENTS_TOPIC, emitterChanged.topic], writes: [EVENTS_TOPIC] },
  runtime: {
    requests: ['catalog', 'event-store', 'routing'],
    reads: [executeRun.topic, restoreRun.topic, emitterChanged.topic],
    writes: [EVENTS_TOPIC, executeRun.topic, restoreRun.topic, runFinished.topic],
  },
};

/** The topics and consumer groups that a service needs. */
export interface TopicAccess {
  reads: string[];
  writes: string[];
  /** Its consumer groups begin with this. */
  groupPrefix: string;
}

export function topicAccess(service: Service): TopicAccess {
  const { requests: asks, reads, writes } = conversations[service];
  const requesters = SERVICES.filter((other) => conversations[other].requests.includes(service));
  return {
    reads: [requestsTopic(service), repliesTopic(service), ...reads],
    writes: [...asks.map(requestsTopic), ...requesters.map(repliesTopic), ...writes, deadLetterTopic(service)],
    groupPrefix: groupPrefix(service),
  };
}

/** The specifications of the topics that a service reads or writes. */
export function topicSpecsOf(service: Service): TopicSpec[] {
  const { reads, writes } = topicAccess(service);
  return topicSpecs().filter(({ topic }) => reads.includes(topic) || writes.includes(topic));
}
