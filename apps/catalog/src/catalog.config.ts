import { readConfig } from '#config';

/** The catalog's part of the environment. */
export class CatalogConfig {
  private constructor(
    /** Where sources' endpoints are reached from outside: `endpoint_url` begins with it. */
    readonly endpointsUrl: string,
    /** The shortest interval of a timer, in seconds. */
    readonly minIntervalSeconds: number,
    /** The longest code, in bytes of UTF-8. */
    readonly maxCodeBytes: number,
    /** Private addresses that component URLs may reach all the same. */
    readonly allowPrivateHosts: string,
  ) {}

  static read(): CatalogConfig {
    return readConfig((env) => {
      const port = env.port('SLUICE_ENDPOINTS_PORT', 3001);
      const endpointsUrl = env.text('SLUICE_ENDPOINTS_URL', `http://localhost:${port}`).replace(/\/+$/, '');
      if (!/^https?:\/\/[^/]+/.test(endpointsUrl)) env.problem(`SLUICE_ENDPOINTS_URL must be an http or https URL, not "${endpointsUrl}"`);
      return new CatalogConfig(
        endpointsUrl,
        env.integer('SLUICE_MIN_INTERVAL_SECONDS', 1, { min: 1 }),
        env.integer('SLUICE_MAX_CODE_BYTES', 512 * 1024, { min: 1024 }),
        env.optional('SLUICE_ALLOW_PRIVATE_HOSTS') ?? '',
      );
    });
  }
}
