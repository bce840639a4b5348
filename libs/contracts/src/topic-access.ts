import { emitterChanged } from './emitters.js';
import { kafkaName, type Service, SERVICES } from './contract.js';
import { errorRaised } from './raised-errors.js';
import { runFinished, executeRun } from './runs.js';
import { deadLetterTopic, EVENTS_TOPIC, repliesTopic, requestsTopic, WORKFLOW_TRIGGERS_TOPIC, WORKFLOWS_TOPIC } from './topics.js';

/** How a service uses Kafka, apart from handling its own requests. */
interface Conversation {
  /** The services that it sends requests to. */
  asks: Service[];
  reads: string[];
  writes: string[];
}

const conversations: Record<Service, Conversation> = {
  gateway: {
    asks: ['catalog', 'routing', 'event-store', 'runtime'],
    reads: [EVENTS_TOPIC, runFinished.topic, errorRaised.topic, emitterChanged.topic],
    writes: [EVENTS_TOPIC, executeRun.topic],
  },
  catalog: { asks: ['gateway', 'runtime', 'routing', 'event-store'], reads: [WORKFLOWS_TOPIC], writes: [emitterChanged.topic] },
  routing: {
    asks: ['catalog', 'event-store'],
    reads: [EVENTS_TOPIC, emitterChanged.topic],
    writes: [EVENTS_TOPIC, WORKFLOW_TRIGGERS_TOPIC, executeRun.topic, errorRaised.topic],
  },
  'event-store': { asks: ['catalog'], reads: [EVENTS_TOPIC, emitterChanged.topic], writes: [] },
  runtime: {
    asks: ['catalog', 'event-store'],
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
  const { asks, reads, writes } = conversations[service];
  const askers = SERVICES.filter((other) => conversations[other].asks.includes(service));
  return {
    reads: [requestsTopic(service), repliesTopic(service), ...reads],
    writes: [...asks.map(requestsTopic), ...askers.map(repliesTopic), ...writes, deadLetterTopic(service)],
    groupPrefix: kafkaName(`${service}.`),
  };
}
