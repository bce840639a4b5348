/** The consumer group of the topic `events`. */
export const EVENTS_GROUP = 'events';

/** Above this many outstanding deliveries no more events are read. This bounds the memory. */
export const MAX_OUTSTANDING = 3000;
