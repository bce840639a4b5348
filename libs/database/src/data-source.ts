import type { Socket } from 'node:net';
import pg from 'pg';
import type { DataSourceOptions, Logger } from 'typeorm';
import type { Log } from '#observability';
import type { Schema } from './schema.js';

type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

const CONNECT_TIMEOUT_MS = 10_000;
const RESPONSE_MS = 60_000;
/** The client closes a connection whose server does not respond for about 20 s, although no statement is active. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

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
  /** How long the server may be silent while a statement is active, in ms; 0: for any time. Default: 60 s. */
  responseMs?: number;
}

/** The options of a DataSource for an app's database. */
export function dataSourceOptions(
  { entities, migrations }: Pick<Schema, 'entities' | 'migrations'>,
  { serverUrl, name, max, log, responseMs = RESPONSE_MS }: Connection,
): PostgresOptions {
  return {
    type: 'postgres',
    driver: pg,
    // Parsed by pg and not by TypeORM, which ignores `sslmode` and the other parameters of the URL.
    extra: {
      connectionString: databaseUrl(serverUrl, name),
      max,
      ...KEEP_ALIVE,
      onConnect: (client: pg.Client) => closeWhenSilent(client, responseMs),
    },
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

/** Members of a client that its types do not declare. */
interface ConnectedClient {
  connection: { stream: Socket };
  /** No statement is active. */
  readyForQuery: boolean;
}

/**
 * Closes a connection when the server sends nothing for `ms` while a statement is active: its host is gone, or a firewall dropped the connection. TCP
 * notices that after a quarter of an hour. The statement fails with a transient error.
 *
 * The driver's `query_timeout` keeps the connection, and every later statement waits behind the one that has timed out. It also ends a COPY that makes
 * progress.
 */
function closeWhenSilent(client: pg.Client, ms: number): void {
  const connected = client as unknown as ConnectedClient;
  const { stream } = connected.connection;
  // fires again after each statement: a connection may be idle before
  stream.on('timeout', () => {
    if (connected.readyForQuery) return;
    stream.destroy(Object.assign(new Error(`PostgreSQL has not responded for ${stream.timeout! / 1000} s`), { code: 'ETIMEDOUT' }));
  });
  stream.setTimeout(ms);
}

/** Changes how long the server may be silent, in ms. Returns a function that undoes it. */
export function extendSilence(client: pg.ClientBase, ms: number): () => void {
  const { stream } = (client as unknown as ConnectedClient).connection;
  const before = stream.timeout ?? 0;
  stream.setTimeout(ms);
  return () => void stream.setTimeout(before);
}

/** The URL of the server with the name of another database. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.toString();
}
