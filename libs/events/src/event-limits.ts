import { integer } from '#config';

/** The size of the largest event, in bytes of JSON. */
export const MAX_EVENT_BYTES = 1024 * 1024;
/** In characters. */
export const MAX_EMIT_ID_LENGTH = 256;
export const MAX_SUMMARY_LENGTH = 65_536;
export const MAX_ITEM_ID_LENGTH = 4096;
/** The number of events that are kept per emitter and stream: the newest ones. */
export const KEPT_EVENTS = 100;

/** The same limit for every service that reads or emits events: a reader with a lower one would discard what an emitter has been allowed to emit. */
export const maxEventBytes = integer('SLUICE_MAX_EVENT_BYTES', {
  fallback: MAX_EVENT_BYTES,
  min: 1024,
  max: MAX_EVENT_BYTES,
  description:
    'Largest event, in bytes of JSON. `$emit` throws for a larger one. One from a Kafka producer goes to the dead-letter topic and is reported on the ' +
    '`$errors` stream of its emitter.',
});
