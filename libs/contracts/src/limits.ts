import { integer } from '#config';
import { MAX_EVENT_BYTES } from './event-record.js';

/** The same limit for every service that reads events. */
export const maxEventBytes = integer('SLUICE_MAX_EVENT_BYTES', {
  fallback: MAX_EVENT_BYTES,
  min: 1024,
  max: MAX_EVENT_BYTES,
  description:
    'Largest event, in bytes of JSON. A larger one from a Kafka producer goes to the dead-letter topic and is reported on the `$errors` ' +
    'stream of its emitter.',
});

/** The same limit for the catalog, which stores code, and for the command that validates a component file. */
export const maxCodeBytes = integer('SLUICE_MAX_CODE_BYTES', {
  fallback: 512 * 1024,
  min: 1024,
  description: 'Largest component code, in bytes of UTF-8.',
});
