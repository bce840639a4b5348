import { readConfig } from '#config';

/** The gateway's part of the environment. */
export class GatewayConfig {
  private constructor(
    readonly host: string,
    readonly port: number,
    /** The largest request body, in bytes. */
    readonly maxBodyBytes: number,
    /** The daily quotas of a free account; null: unlimited. */
    readonly quotas: { computeMs: number; invocations: number } | null,
    /** Requests per minute and key; 0: unlimited. */
    readonly requestsPerMinute: number,
  ) {}

  static read(): GatewayConfig {
    return readConfig(
      (env) =>
        new GatewayConfig(
          env.text('SLUICE_HTTP_HOST', '0.0.0.0'),
          env.port('SLUICE_HTTP_PORT', 3000),
          env.integer('SLUICE_MAX_BODY_BYTES', 2 * 1024 * 1024, { min: 1024 }),
          env.choice('SLUICE_QUOTAS', 'unlimited', ['unlimited', 'free'] as const) === 'unlimited'
            ? null
            : {
                computeMs: env.integer('SLUICE_DAILY_COMPUTE_MS', 1_800_000, { min: 0, max: 2_147_483_647 }),
                invocations: env.integer('SLUICE_DAILY_INVOCATIONS', 333, { min: 0, max: 2_147_483_647 }),
              },
          env.integer('SLUICE_REQUESTS_PER_MINUTE', 0),
        ),
    );
  }
}
