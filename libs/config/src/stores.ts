import { BadValue, optional, text, variable } from './variable.js';

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

function isHostAndPort(text: string): boolean {
  const port = Number(/^[\w.-]+:(\d+)$/.exec(text)?.[1]);
  return port >= 1 && port <= 65_535;
}

/** The addresses of the stores: for the services that connect to them, and for the guard that keeps users' requests away from them. */
export const storeVariables = {
  kafkaBrokers: variable('KAFKA_BROKERS', {
    fallback: 'localhost:9092',
    description:
      'Bootstrap servers of the Kafka cluster, as `host:port,host:port`. `npm start` runs an embedded broker, unless this is set.',
    parse: (value) => {
      const brokers = value.split(',').map((broker) => broker.trim());
      if (!brokers.every(isHostAndPort)) throw new BadValue('must list host:port');
      return brokers;
    },
  }),
  databaseUrl: variable('DATABASE_URL', {
    secret: true,
    description:
      'URL of the PostgreSQL server, such as `postgres://user@host:5432/postgres?sslmode=verify-full&sslrootcert=/path/ca.crt`. Its ' +
      'database is used only to create the others.',
    parse: (value) => {
      if (!URL.canParse(value) || !/^postgres(ql)?:$/.test(new URL(value).protocol))
        throw new BadValue('must be a URL such as postgres://user@host:5432/postgres');
      // the driver would use TLS
      if (!SSL_MODES.includes(new URL(value).searchParams.get('sslmode') ?? 'disable'))
        throw new BadValue(`must have one of these values of sslmode: ${SSL_MODES.join(', ')}`);
      return value;
    },
  }),
  databasePassword: optional(
    text('DATABASE_PASSWORD', { secret: true, description: 'Password for `DATABASE_URL`; takes precedence over one in the URL.' }),
  ),
};

/** The server's URL with its password. */
export function databaseUrlOf(config: { databaseUrl: string; databasePassword: string | undefined }): string {
  if (config.databasePassword === undefined) return config.databaseUrl;
  const url = new URL(config.databaseUrl);
  url.password = encodeURIComponent(config.databasePassword);
  return url.toString();
}
