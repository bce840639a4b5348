import { readConfig } from '#config';
import { MAX_EVENT_BYTES } from '#contracts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export class EventStoreConfig {
  /** The largest event that is kept, in bytes of JSON; a larger one goes to the dead-letter topic. */
  readonly maxEventBytes!: number;
  /** How often the events of emitters that are gone are looked for. */
  readonly sweepEveryMs!: number;
  /** How long events are kept whose emitter nobody knows. */
  readonly unknownEmittersKeptMs!: number;

  static read(): EventStoreConfig {
    return readConfig((env) => ({
      maxEventBytes: env.integer('SLUICE_MAX_EVENT_BYTES', MAX_EVENT_BYTES, { min: 1024, max: MAX_EVENT_BYTES }),
      sweepEveryMs: env.integer('SLUICE_EVENT_SWEEP_MINUTES', 60, { min: 1, max: 10_000 }) * MINUTE_MS,
      unknownEmittersKeptMs: env.integer('SLUICE_UNKNOWN_EMITTER_HOURS', 24, { min: 1, max: 10_000 }) * HOUR_MS,
    }));
  }
}
