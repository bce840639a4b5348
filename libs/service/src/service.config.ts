import { choice, Config, integer, text, timeout } from '#config';
import { LOG_LEVELS } from '#observability';

/** The lifecycle of a process. Durations are milliseconds. */
export class ServiceConfig extends Config({
  logLevel: choice('SLUICE_LOG_LEVEL', {
    words: LOG_LEVELS,
    fallback: 'info',
    description: `Log level: ${LOG_LEVELS.join(', ')}.`,
  }),
  healthPort: integer('SLUICE_HEALTH_PORT', {
    fallback: 0,
    max: 65_535,
    description:
      'Port of `/health/live`, `/health/ready` and `/metrics` of each service; 0: none. 8080 in the image. With `npm start` the services have five ports that begin with this one.',
  }),
  healthHost: text('SLUICE_HEALTH_HOST', {
    fallback: '',
    description: 'Address of that port; empty: all. With `npm start`, the default is `SLUICE_HOST`.',
  }),
  startupTimeoutMs: timeout('SLUICE_STARTUP_TIMEOUT', {
    fallback: '2m',
    min: '1ms',
    description:
      'How long a service that starts waits for Kafka, PostgreSQL and `sluice migrate` before it gives up with exit code 1. `npm start` sets 1h, unless ' +
      'both stores are elsewhere.',
  }),
  shutdownTimeoutMs: timeout('SLUICE_SHUTDOWN_TIMEOUT', {
    fallback: '45s',
    min: '1ms',
    description:
      'How long a service that stops waits for the runs, deliveries and requests under way. Longer than the longest of them, and shorter than ' +
      'the time after which it is killed. `npm start` sets 8s.',
  }),
  shutdownDelayMs: timeout('SLUICE_SHUTDOWN_DELAY', {
    fallback: '2s',
    description:
      'How long the REST API and the endpoints keep responding after SIGTERM, with `Connection: close`, so that clients open their ' +
      'next connection elsewhere. Part of `SLUICE_SHUTDOWN_TIMEOUT`. Ends early when nobody is connected. `npm start` sets 0s.',
  }),
}) {
  problems(): string[] {
    if (this.shutdownDelayMs < this.shutdownTimeoutMs) return [];
    return [`SLUICE_SHUTDOWN_DELAY must be shorter than SLUICE_SHUTDOWN_TIMEOUT (${this.shutdownTimeoutMs / 1000} s), which includes it`];
  }
}
