import pg from 'pg';
import type { DataSourceOptions, Logger } from 'typeorm';
import type { Log } from '#observability';
import type { Schema } from './schema.js';

type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

const CONNECT_TIMEOUT_MS = 10_000;

/** Failures reach the caller as errors. TypeORM's own loggers write to the console, where a failed migration would appear twice. */
const SILENT: Logger = { logQuery() {}, logQueryError() {}, logQuerySlow() {}, logSchemaBuild() {}, logMigration() {}, log() {} };

const INT8 = 20;
const INT8_ARRAY = 1016;
// bigint columns contain milliseconds, offsets and counters: all of them are safe integers
pg.types.setTypeParser(INT8, Number);
pg.types.setTypeParser(INT8_ARRAY as never, (text: string) => text.slice(1, -1).split(',').filter(Boolean).map(Number));

export interface Connection {
  /** Of the server; the database's name replaces its path. */
  serverUrl: string;
  /** Of the database. */
  name: string;
  /** Connections of the pool at most. */
  max: number;
  log: Log;
}

/** The options of a DataSource for an app's database. */
export function dataSourceOptions(
  { entities, migrations }: Pick<Schema, 'entities' | 'migrations'>,
  { serverUrl, name, max, log }: Connection,
): PostgresOptions {
  return {
    type: 'postgres',
    driver: pg,
    // Parsed by pg and not by TypeORM, which ignores `sslmode` and the other parameters of the URL.
    extra: { connectionString: databaseUrl(serverUrl, name), max },
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    applicationName: name,
    // An idle connection that the server closes: the pool replaces it.
    poolErrorHandler: (error: Error) => log.warn({ err: error }, 'database.connection-lost'),
    entities: entities as PostgresOptions['entities'],
    migrations,
    installExtensions: false,
    logger: SILENT,
  };
}

/** The URL of the server with the name of another database. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.toString();
}
