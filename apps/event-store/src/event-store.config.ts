import { readConfig } from '#config';
import { MAX_EVENT_BYTES } from '#contracts';

export class EventStoreConfig {
  /** The largest event that is kept, in bytes of JSON; a larger one goes to the dead-letter topic. */
  readonly maxEventBytes!: number;

  static read(): EventStoreConfig {
    return readConfig((env) => ({
      maxEventBytes: env.integer('SLUICE_MAX_EVENT_BYTES', MAX_EVENT_BYTES, { min: 1024, max: 2 * MAX_EVENT_BYTES }),
    }));
  }
}
