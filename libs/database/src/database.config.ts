import { BadValue, Config, databaseUrlOf, integer, storeVariables, variable } from '#config';

/** The configuration of an app's database. */
export class DatabaseConfig extends Config({
  databaseUrl: storeVariables.databaseUrl,
  databasePassword: storeVariables.databasePassword,
  pool: integer('SLUICE_DATABASE_POOL', {
    fallback: 0,
    max: 1000,
    description: 'PostgreSQL connections of each process at most, 3 or more; 0: 20 for routing and runtime, 10 for the others.',
  }),
  prefix: variable('SLUICE_DATABASE_PREFIX', {
    fallback: '',
    description: 'Prefix of the names of the five databases, such as `staging_`, so that several installations can share a server.',
    parse: (value) => {
      if (!/^[a-z0-9_]{0,32}$/.test(value)) throw new BadValue('must consist of at most 32 lower-case letters, digits and underscores');
      return value;
    },
  }),
}) {
  problems(): string[] {
    const problems: string[] = [];
    // a URL without a host, such as one of a socket, has no place for a password
    if (this.databasePassword !== undefined && new URL(this.databaseUrl).hostname === '')
      problems.push('DATABASE_PASSWORD is set, but DATABASE_URL has no host, so the password would not be used');
    // each process needs one for its outbox, and the runtime another one for the locks of sources
    if (this.pool === 1 || this.pool === 2)
      problems.push('SLUICE_DATABASE_POOL must be 0 or at least 3: a process keeps up to two connections for its locks');
    return problems;
  }

  /** URL of the server, with its password. */
  get serverUrl(): string {
    return databaseUrlOf(this);
  }

  /** The name of an app's database on the server. */
  nameOf(app: string): string {
    return `${this.prefix}${app.replaceAll('-', '_')}`;
  }
}
