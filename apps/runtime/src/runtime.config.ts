import { boolean, Config, type DailyQuotas, endpointsUrlOf, endpointVariables, integer, quotasOf, quotaVariables, text } from '#config';
import { HttpServerConfig } from '#http-server';
import { retrySchedule } from '#retries';
import { SecretsConfig } from '#secrets';
import { WaitingDataConfig } from '#waiting-data';
import { PackagesConfig } from './sandbox/packages/packages.config.js';
import { RunnerConfig } from './sandbox/runner.config.js';

/** The runtime's part of the configuration; the sandbox has its own. */
export class RuntimeConfig extends Config({
  endpointsHost: text('SLUICE_ENDPOINTS_HOST', {
    fallback: '0.0.0.0',
    description: 'Address on which the endpoints of sources listen. With `npm start`, the default is `SLUICE_HOST`.',
  }),
  ...endpointVariables,
  maxEndpointBodyBytes: integer('SLUICE_MAX_ENDPOINT_BODY_BYTES', {
    fallback: 512 * 1024,
    min: 1024,
    // a request that is queued is one record of at most 4 MiB, with its body in base64
    max: 2 * 1024 * 1024,
    description: 'Largest request body of an endpoint, in bytes, at most 2097152 (2 MiB).',
  }),
  endpointRate: integer('SLUICE_ENDPOINT_REQUESTS_PER_SECOND', {
    fallback: 0,
    description: 'Requests per second that an endpoint accepts in each replica; further ones get 429. 0: unlimited.',
  }),
  logsComponents: boolean('SLUICE_LOG_COMPONENTS', {
    fallback: false,
    description:
      'Whether the log also contains what components write to the console, and the errors that they throw, with the name of the source. ' +
      'For development; `npm start` sets it.',
  }),
  concurrency: integer('SLUICE_RUNS_AT_ONCE', { fallback: 32, min: 1, description: 'Runs at a time in each replica, over all accounts.' }),
  maxQueuedRuns: integer('SLUICE_MAX_QUEUED_RUNS', {
    fallback: 10_000,
    min: 1,
    description:
      'Runs of one account that may wait. While more wait, its endpoints return 429; runs for events and timers are still queued.',
  }),
  retrySchedule,
  ...quotaVariables,
}) {
  /** Where sources' endpoints are reached from outside. */
  get endpointsUrl(): string {
    return endpointsUrlOf(this);
  }
  /** null: no limit */
  get endpointRequestsPerSecond(): number | null {
    return this.endpointRate || null;
  }
  /** The daily quota of an account; null: unlimited. */
  get quotas(): DailyQuotas | null {
    return quotasOf(this);
  }
}

export const settings = [RuntimeConfig, HttpServerConfig, WaitingDataConfig, RunnerConfig, PackagesConfig, SecretsConfig];
