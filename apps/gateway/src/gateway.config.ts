import { type DailyQuotas, readConfig, readQuotas } from '#config';

/** The gateway's part of the environment. */
export class GatewayConfig {
  private constructor(
    readonly host: string,
    readonly port: number,
    /** The largest request body, in bytes. */
    readonly maxBodyBytes: number,
    /** The daily quotas of a free account; null: unlimited. */
    readonly quotas: DailyQuotas | null,
    /** Requests per minute and key; 0: unlimited. */
    readonly requestsPerMinute: number,
    /** Where mail is sent; undefined: it's only logged. */
    readonly smtpUrl: string | undefined,
    readonly mailFrom: string,
  ) {}

  static read(): GatewayConfig {
    return readConfig(
      (env) =>
        new GatewayConfig(
          env.text('SLUICE_HTTP_HOST', '0.0.0.0'),
          env.port('SLUICE_HTTP_PORT', 3000),
          env.integer('SLUICE_MAX_BODY_BYTES', 2 * 1024 * 1024, { min: 1024 }),
          readQuotas(env),
          env.integer('SLUICE_REQUESTS_PER_MINUTE', 0),
          env.optional('SLUICE_SMTP_URL'),
          env.text('SLUICE_MAIL_FROM', 'Sluice <sluice@localhost>'),
        ),
    );
  }
}
