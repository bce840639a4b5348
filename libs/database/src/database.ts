import pg from 'pg';
import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg';
import type { Log } from '#observability';

/** One connection in a transaction, or any connection of the pool: runs the statements of a repository. */
export interface Session {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<Row>>;
  query<Row extends QueryResultRow>(statement: { name: string; text: string; values: unknown[] }): Promise<QueryResult<Row>>;
}
/** A session in a transaction: a parameter of this type ensures that writes are made together. */
export type Transaction = PoolClient;

const INT8 = 20;
const INT8_ARRAY = 1016;
// bigint columns contain milliseconds, offsets and counters: all of them are safe integers
pg.types.setTypeParser(INT8, Number);
pg.types.setTypeParser(INT8_ARRAY as never, (text: string) => text.slice(1, -1).split(',').filter(Boolean).map(Number));

/** An app's PostgreSQL database. */
export class Database implements Session {
  readonly pool: Pool;
  /** Runs one statement on any connection. */
  readonly query: Session['query'];

  /** url: the URL of the server; the name of the database replaces its path. */
  constructor(
    url: string,
    readonly name: string,
    private readonly log: Log,
    options: pg.PoolConfig = {},
  ) {
    this.pool = new pg.Pool({
      connectionString: databaseUrl(url, name),
      max: 10,
      connectionTimeoutMillis: 10_000,
      application_name: name,
      ...options,
    });
    this.query = this.pool.query.bind(this.pool);
    // when the server closes an idle connection, the pool replaces it; without a handler the 'error' event would end the process
    this.pool.on('error', (error) => this.log.warn({ err: error }, 'database.connection-lost'));
  }

  /** Runs `work` in one transaction: commits when it returns, rolls back when it throws. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    // a connection that breaks between queries reports it only with this event
    const onError = (error: Error) => this.log.warn({ err: error }, 'database.connection-lost');
    client.on('error', onError);
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch((rollback: Error) => (broken = rollback));
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }

  /** For `LISTEN`, advisory locks and COPY: a dedicated connection, to be released. */
  connect(): Promise<PoolClient> {
    return this.pool.connect();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}

/** The URL of the server with the name of another database. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.toString();
}

/** Whether a retry can help: the server is down or restarting, or two transactions conflicted. */
export function isTransient(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  const message = error instanceof Error ? error.message : '';
  if (typeof code === 'string' && /^(08|40|53|57P|55P03|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)/.test(code)) return true;
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(message);
}

/** Whether the data itself is the cause, so that a retry never helps: a value, a constraint, a limit. */
export function isOfData(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? /^(22|23|54)/.test(code) : error instanceof RangeError || error instanceof TypeError;
}

export const UNIQUE_VIOLATION = '23505';
