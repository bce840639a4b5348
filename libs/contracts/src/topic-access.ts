import { emitterChanged } from './emitters.js';
import { kafkaName, type Service, SERVICES } from './contract.js';
import { errorRaised } from './raised-errors.js';
import { runFinished, executeRun } from './runs.js';
import { deadLetterTopic, EVENTS_TOPIC, repliesTopic, requestsTopic, WORKFLOW_TRIGGERS_TOPIC, WORKFLOWS_TOPIC } from './topics.js';

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
  catalog: { requests: ['gateway', 'runtime', 'routing', 'event-store'], reads: [WORKFLOWS_TOPIC], writes: [emitterChanged.topic] },
  routing: {
    requests: ['catalog', 'event-store'],
    reads: [EVENTS_TOPIC, emitterChanged.topic],
    writes: [EVENTS_TOPIC, WORKFLOW_TRIGGERS_TOPIC, executeRun.topic, errorRaised.topic],
  },
  'event-store': { requests: ['catalog'], reads: [EVENTS_TOPIC, emitterChanged.topic], writes: [] },
  runtime: {
    requests: ['catalog', 'event-store'],
    reads: [executeRun.topic, emitterChanged.topic],
    writes: [EVENTS_TOPIC, executeRun.topic, runFinished.topic],
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
    groupPrefix: kafkaName(`${service}.`),
  };
}
