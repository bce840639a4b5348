import pg from 'pg';
import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg';
import type { Log } from '#observability';

/** One connection inside a transaction, or any connection of the pool: what a repository's statements run on. */
export interface Session {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<Row>>;
  query<Row extends QueryResultRow>(statement: { name: string; text: string; values: unknown[] }): Promise<QueryResult<Row>>;
}
/** A session in a transaction: what must be written together asks for this type. */
export type Transaction = PoolClient;

const INT8 = 20;
const INT8_ARRAY = 1016;
// bigint columns hold milliseconds, offsets and counters: all of them safe integers
pg.types.setTypeParser(INT8, Number);
pg.types.setTypeParser(INT8_ARRAY as never, (text: string) => text.slice(1, -1).split(',').filter(Boolean).map(Number));

/** An app's PostgreSQL database. */
export class Database implements Session {
  readonly pool: Pool;
  /** Runs one statement, on any connection. */
  readonly query: Session['query'];

  /** url: of the server; the database's own name replaces the path. */
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
    // an idle connection that the server closes: the pool replaces it, and an unheard 'error' would end the process
    this.pool.on('error', (error) => this.log.warn({ err: error }, 'database.connection-lost'));
  }

  /** Runs `work` in one transaction: commits when it returns, rolls back when it throws. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    // a connection that breaks outside of a query tells it by this event only
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

  /** For `LISTEN`, advisory locks and COPY: a connection of one's own, to be released. */
  connect(): Promise<PoolClient> {
    return this.pool.connect();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}

/** The server's URL with another database's name. */
export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.toString();
}

/** Whether trying again can help: the server is away, restarting, or two transactions got in each other's way. */
export function isTransient(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  const message = error instanceof Error ? error.message : '';
  if (typeof code === 'string' && /^(08|40|53|57P|55P03|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)/.test(code)) return true;
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(message);
}

/** Whether it's what was to be written that is wrong, so that trying again never helps: a value, a constraint, a limit. */
export function isOfData(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? /^(22|23|54)/.test(code) : error instanceof RangeError || error instanceof TypeError;
}

export const UNIQUE_VIOLATION = '23505';
