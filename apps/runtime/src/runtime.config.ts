import { type DailyQuotas, readConfig, readQuotas } from '#config';

/** The runtime's part of the environment; the sandbox reads its own. */
export class RuntimeConfig {
  private constructor(
    readonly endpointsHost: string,
    readonly endpointsPort: number,
    /** Where sources' endpoints are reached from outside. */
    readonly endpointsUrl: string,
    /** The largest body that an endpoint takes, in bytes. */
    readonly maxEndpointBodyBytes: number,
    /** Requests a second that an endpoint takes, in each replica; null: no limit. */
    readonly endpointRequestsPerSecond: number | null,
    /** Runs at a time, over all accounts. */
    readonly concurrency: number,
    /** What an account may use a day; null: unlimited. */
    readonly quotas: DailyQuotas | null,
  ) {}

  static read(): RuntimeConfig {
    return readConfig((env) => {
      const port = env.port('SLUICE_ENDPOINTS_PORT', 3001);
      return new RuntimeConfig(
        env.text('SLUICE_ENDPOINTS_HOST', '0.0.0.0'),
        port,
        env.text('SLUICE_ENDPOINTS_URL', `http://localhost:${port}`).replace(/\/+$/, ''),
        env.integer('SLUICE_MAX_ENDPOINT_BODY_BYTES', 512 * 1024, { min: 1024 }),
        env.integer('SLUICE_ENDPOINT_REQUESTS_PER_SECOND', 0) || null,
        env.integer('SLUICE_RUNS_AT_ONCE', 32, { min: 1 }),
        readQuotas(env),
      );
    });
  }
}
