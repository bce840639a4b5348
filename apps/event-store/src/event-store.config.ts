import { Config, integer } from '#config';
import { maxEventBytes } from '#events';
import { SecretsConfig } from '#secrets';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The event store's part of the configuration. */
export class EventStoreConfig extends Config({
  maxEventBytes,
  sweepMinutes: integer('SLUICE_EVENT_SWEEP_MINUTES', {
    fallback: 60,
    min: 1,
    max: 10_000,
    description: 'Minutes between two sweeps that remove the events of deleted and unknown emitters.',
  }),
  unknownEmitterHours: integer('SLUICE_UNKNOWN_EMITTER_HOURS', {
    fallback: 24,
    min: 1,
    max: 10_000,
    description: 'Hours for which events of an unknown emitter are kept.',
  }),
}) {
  get sweepEveryMs(): number {
    return this.sweepMinutes * MINUTE_MS;
  }
  get unknownEmittersKeptMs(): number {
    return this.unknownEmitterHours * HOUR_MS;
  }
}

export const settings = [EventStoreConfig, SecretsConfig];
