import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg';
import { DataSource, type EntityTarget, type ObjectLiteral, type QueryRunner, type Repository } from 'typeorm';
import { type Connection, dataSourceOptions, extendSilence } from './data-source.js';
import { isOutdatedPlan } from './database-errors.js';
import type { Schema } from './schema.js';

/** If this host disappears, the server ends the session after this time and frees its locks, also if it has sent a response that was not acknowledged. */
const LOST_AFTER_MS = 25_000;
const LONG_MS = 600_000;

/** One connection in a transaction, or any connection of the pool: runs the statements of a repository. */
export interface Session {
  /** Runs a statement without TypeORM in between: for hot paths, and where the statement is the point. One with a name is prepared once per connection. */
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<Row>>;
  query<Row extends QueryResultRow>(statement: { name: string; text: string; values: unknown[] }): Promise<QueryResult<Row>>;
  /** TypeORM's repository of an entity, working in this session: for plain rows. */
  rows<Entity extends ObjectLiteral>(entity: EntityTarget<Entity>): Repository<Entity>;
}

/** A session in a transaction: what must be written together takes this type. */
export class Transaction implements Session {
  readonly query: Session['query'];
  private readonly afterwards: (() => Promise<void>)[] = [];
  private undo: () => void = () => {};

  constructor(
    /** For COPY. */
    readonly client: PoolClient,
    private readonly runner: Pick<QueryRunner, 'manager'>,
  ) {
    this.query = client.query.bind(client);
  }

  rows<Entity extends ObjectLiteral>(entity: EntityTarget<Entity>): Repository<Entity> {
    return this.runner.manager.getRepository(entity);
  }

  /** Allows each further statement ten minutes: for one that deletes any number of rows. A shorter limit would end every attempt. */
  takeLong(): void {
    this.undo();
    this.undo = extendSilence(this.client, LONG_MS);
  }

  /** The connection is about to be used by others. */
  ended(): void {
    this.undo();
  }

  /** Adds work that follows the commit; the transaction's promise resolves after it. It must not throw. */
  afterCommit(work: () => Promise<void>): void {
    this.afterwards.push(work);
  }

  /** The transaction is committed. */
  async committed(): Promise<void> {
    await Promise.all(this.afterwards.map((work) => work()));
  }
}

/** SQL and transactions on an app's DataSource, in addition to TypeORM's repositories. */
export class Database implements Session {
  constructor(readonly dataSource: DataSource) {}

  /** For a program without Nest. Nothing works before `open`. */
  static of(schema: Schema, connection: Connection): Database {
    return new Database(new DataSource(dataSourceOptions(schema, connection)));
  }

  async open(): Promise<this> {
    await this.dataSource.initialize();
    return this;
  }

  async close(): Promise<void> {
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
  }

  /** The pool under TypeORM's driver. */
  get pool(): Pool {
    return (this.dataSource.driver as unknown as { master: Pool }).master;
  }

  /** Runs one statement on any connection. */
  readonly query = ((...statement: Parameters<Pool['query']>) =>
    // the pool closes the connection of a statement that has failed
    unlessOutdated(() => this.pool.query(...statement) as unknown as Promise<QueryResult>)) as Session['query'];

  rows<Entity extends ObjectLiteral>(entity: EntityTarget<Entity>): Repository<Entity> {
    return this.dataSource.getRepository(entity);
  }

  /** Runs `work` in one transaction: commits when it returns, rolls back when it throws. After a migration of the next version, it may run `work` again. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const { result, transaction } = await unlessOutdated(() => this.inTransaction(work));
    // its connection is back in the pool: what follows can need one
    await transaction.committed();
    return result;
  }

  private async inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<{ result: T; transaction: Transaction }> {
    const runner = this.dataSource.createQueryRunner();
    let transaction: Transaction | undefined;
    try {
      transaction = new Transaction((await runner.connect()) as PoolClient, runner);
      await runner.startTransaction();
      const result = await work(transaction);
      await runner.commitTransaction();
      return { result, transaction };
    } catch (error) {
      // The roll-back of a broken connection fails too; the pool drops such a connection.
      await runner.rollbackTransaction().catch(() => {});
      // the pool drops a connection that is being closed
      if (isOutdatedPlan(error)) void transaction?.client.end();
      throw error;
    } finally {
      transaction?.ended();
      await runner.release();
    }
  }

  /** A connection for `LISTEN` and advisory locks, which it takes with `END_WHEN_IDLE`. The caller ends it: `release(true)`. */
  async connect(): Promise<PoolClient> {
    const client = await this.pool.connect();
    // a lost connection is an event, too: if nothing listened, it would end the process
    client.on('error', () => {});
    try {
      await client.query(`SET tcp_user_timeout = ${LOST_AFTER_MS}`);
      return client;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }
}

/** Repeats what fails because of statements that its connection prepared before a migration. Each such failure closes a connection. */
async function unlessOutdated<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
    }
  }
}
