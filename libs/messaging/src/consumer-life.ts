import type { Consumer, ConsumerConfig, Kafka } from 'kafkajs';
import type { Log } from '#observability';

/** How a consumer is doing, for the health endpoint. */
export interface ConsumerState {
  group: string;
  running: boolean;
  /** When the last fetch was answered, in ms. */
  lastFetchAt: number;
}

const states = new Map<string, ConsumerState>();

/** The state of every consumer of this process. */
export const consumerStates = (): ConsumerState[] => [...states.values()];

/** Takes a consumer out of these: one that comes and goes as it's needed says nothing about the health of the process. */
export const forgetConsumer = (group: string): void => void states.delete(group);

const defaults = {
  // a process killed without leaving blocks its group for this long
  sessionTimeout: 10_000,
  rebalanceTimeout: 20_000,
  heartbeatInterval: 1500,
  // a fetch is answered at once when there is data: this bounds only idle polls, the notice of a rebalance and the shutdown
  maxWaitTimeInMs: 250,
  maxBytes: 16 * 1024 * 1024,
  allowAutoTopicCreation: false,
} satisfies Partial<ConsumerConfig>;

/**
 * Makes a consumer with our settings and watches over it: one that dies for good ends the process, for a process that
 * lives on without consuming looks well and does nothing. Its supervisor starts it again.
 */
export function createConsumer(kafka: Kafka, group: string, log: Log, config: Partial<ConsumerConfig> = {}): Consumer {
  const consumer = kafka.consumer({ ...defaults, ...config, groupId: group });
  const state: ConsumerState = { group, running: false, lastFetchAt: 0 };
  states.set(group, state);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    state.running = true;
    log.debug({ group, assignment: payload.memberAssignment }, 'consumer.joined');
  });
  consumer.on(consumer.events.FETCH, () => void (state.lastFetchAt = Date.now()));
  consumer.on(consumer.events.STOP, () => void (state.running = false));
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    state.running = false;
    if (payload.restart) return log.warn({ group, err: payload.error }, 'consumer.restarting');
    log.fatal({ group, err: payload.error }, 'consumer.dead');
    process.exit(1);
  });
  return consumer;
}
