import * as components from './components.js';
import type { Contract } from './contract.js';
import * as emitters from './emitters.js';
import * as events from './events.js';
import * as raisedErrors from './raised-errors.js';
import * as runs from './runs.js';
import * as sources from './sources.js';
import * as subscriptions from './subscriptions.js';
import * as webhooks from './webhooks.js';

/** The public topics: stable, for producers and consumers outside. */
export const EVENTS_TOPIC = 'events';
export const WORKFLOWS_TOPIC = 'workflows';
export const WORKFLOW_TRIGGERS_TOPIC = 'workflow-triggers';

export const SERVICES = ['gateway', 'catalog', 'routing', 'event-store', 'runtime'] as const;
export type Service = (typeof SERVICES)[number];

export const repliesTopic = (service: Service): string => `${service}.replies`;
export const deadLetterTopic = (service: Service): string => `${service}.dead-letter`;

/** How a topic is made; what is absent stays the broker's default. */
export interface TopicSpec {
  topic: string;
  partitions: 'one' | 'configured';
  config?: Record<string, string>;
}

const DAY_MS = 86_400_000;

/** Every contract of every module: a contract that isn't exported by one of these has no topic. */
export const contracts: Contract<object, unknown>[] = [components, sources, emitters, webhooks, subscriptions, events, raisedErrors, runs]
  .flatMap((module) => Object.values(module) as unknown[])
  .filter(
    (value): value is Contract<object, unknown> => typeof value === 'object' && value !== null && 'topic' in value && 'kind' in value,
  );

/** All topics, made explicitly at migration and never by the broker on its own. */
export function topicSpecs(): TopicSpec[] {
  return [
    {
      topic: EVENTS_TOPIC,
      partitions: 'configured',
      config: { 'message.timestamp.type': 'LogAppendTime', 'retention.ms': String(7 * DAY_MS), 'max.message.bytes': '2097152' },
    },
    { topic: WORKFLOWS_TOPIC, partitions: 'configured', config: { 'cleanup.policy': 'compact' } },
    { topic: WORKFLOW_TRIGGERS_TOPIC, partitions: 'configured', config: { 'max.message.bytes': '2097152' } },
    ...[...new Map(contracts.map((contract) => [contract.topic, contract])).values()].map((contract): TopicSpec => ({
      topic: contract.topic,
      partitions: 'configured',
      config: {
        'max.message.bytes': '4194304',
        ...(contract.compacted ? { 'cleanup.policy': 'compact' } : contract.kind === 'fact' ? {} : { 'retention.ms': '3600000' }),
      },
    })),
    ...SERVICES.map((service): TopicSpec => ({
      topic: repliesTopic(service),
      partitions: 'one',
      config: { 'retention.ms': '3600000', 'max.message.bytes': '4194304' },
    })),
    ...SERVICES.map((service): TopicSpec => ({
      topic: deadLetterTopic(service),
      partitions: 'one',
      config: { 'max.message.bytes': '4194304' },
    })),
  ];
}
