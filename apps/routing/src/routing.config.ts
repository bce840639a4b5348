import { readConfig } from '#config';
import { MAX_EVENT_BYTES } from '#contracts';
import { AddressGuard } from '#egress';

const DAY_MS = 24 * 3_600_000;

/** The routing's part of the environment. Durations are milliseconds. */
export class RoutingConfig {
  /** Pauses between the attempts of a delivery; after the last of them it's given up. */
  readonly retrySchedule!: number[];
  /** From the beginning of an attempt to the end of the answer's headers. */
  readonly attemptTimeoutMs!: number;
  readonly connectTimeoutMs!: number;
  /** Attempts in flight at a time, to all webhooks together. */
  readonly concurrency!: number;
  /** Attempts in flight at a time to one webhook. */
  readonly webhookConcurrency!: number;
  /** An endpoint that has failed for so long is switched off. */
  readonly switchOffAfterMs!: number;
  /** How long a delivery that was given up is kept. */
  readonly failedKeptMs!: number;
  /** The largest event that is delivered, in bytes of JSON. */
  readonly maxEventBytes!: number;
  /** Where deliveries may go. */
  readonly guard!: AddressGuard;

  static read(): RoutingConfig {
    return readConfig((env) => {
      const retrySchedule = env.durations('SLUICE_RETRY_SCHEDULE', '5s,5m,30m,2h,5h,10h,14h,20h,24h');
      const [attemptTimeoutMs = 15_000] = env.durations('SLUICE_ATTEMPT_TIMEOUT', '15s');
      const [connectTimeoutMs = 5000] = env.durations('SLUICE_CONNECT_TIMEOUT', '5s');
      const [switchOffAfterMs = 5 * DAY_MS] = env.durations('SLUICE_SWITCH_OFF_AFTER', '5d');
      const [failedKeptMs = 7 * DAY_MS] = env.durations('SLUICE_FAILED_DELIVERIES_KEPT', '7d');
      let guard = AddressGuard.fromConfig('');
      try {
        guard = AddressGuard.fromConfig(env.optional('SLUICE_ALLOW_PRIVATE_HOSTS') ?? '');
      } catch (error) {
        env.problem(`SLUICE_ALLOW_PRIVATE_HOSTS: ${(error as Error).message}`);
      }
      return {
        retrySchedule,
        attemptTimeoutMs,
        connectTimeoutMs,
        concurrency: env.integer('SLUICE_DELIVERY_CONCURRENCY', 512, { min: 1, max: 10_000 }),
        webhookConcurrency: env.integer('SLUICE_WEBHOOK_CONCURRENCY', 4, { min: 1, max: 100 }),
        switchOffAfterMs,
        failedKeptMs,
        maxEventBytes: env.integer('SLUICE_MAX_EVENT_BYTES', MAX_EVENT_BYTES, { min: 1024, max: 2 * MAX_EVENT_BYTES }),
        guard,
      };
    });
  }
}
