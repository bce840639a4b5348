import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { SluiceError } from '#contracts';
import { Database, END_WHEN_IDLE, keepSession, STAY_WHEN_IDLE } from '#database';
import { LOG, type Log } from '#observability';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

const LOCK = `SELECT pg_try_advisory_lock(hashtextextended($1, 1)) AS done, ${END_WHEN_IDLE}`;
const UNLOCK = 'SELECT pg_advisory_unlock(hashtextextended($1, 1))';

/**
 * For a run that is about to store its outcome. If its lock was lost, such as by a restart of PostgreSQL, it waits for the lock again and calls `check`, which
 * throws if what the run has read is outdated. Can be called again when that or the storing has failed.
 */
export type KeepLock = (check: () => Promise<void>) => Promise<void>;

/**
 * One run of a source at a time over all replicas. Within a replica, its lanes usually ensure that, but runs that waited in lanes for
 * `concurrency: n` can overlap when a new component allows one at a time. Runs of two replicas can overlap for requests that the component responds
 * to itself, and for the last runs of a partition that has just moved.
 *
 * Advisory locks, all of them on one connection: a process that ends, or is frozen for 20 s, loses its locks, and no run occupies a connection of the
 * pool. PostgreSQL grants a connection its own locks again, so the runs of this replica form a queue first.
 */
@Injectable()
export class SourceLocks {
  private closed = false;
  private connection: Promise<PoolClient> | undefined;
  /** Settled when the connection is free. */
  private turn: Promise<unknown> = Promise.resolve();
  /** Settled when the last run of a source has ended in this replica. */
  private readonly lastRuns = new Map<string, Promise<void>>();
  /** Runs that hold a lock or wait for it. */
  private runs = 0;
  private letGo: (() => Promise<void>) | undefined;

  constructor(
    private readonly database: Database,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Waits until nothing else runs the source, then does the work. Throws a transient error if the database is down. */
  async alone<T>(sourceId: string, work: (keepLock: KeepLock) => Promise<T>): Promise<T> {
    const before = this.lastRuns.get(sourceId);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.lastRuns.set(sourceId, ended);
    try {
      await before;
      return await this.withLock(sourceId, work);
    } finally {
      end();
      if (this.lastRuns.get(sourceId) === ended) this.lastRuns.delete(sourceId);
    }
  }

  /** After the last run: the pool waits for the connection. */
  async close(): Promise<void> {
    this.closed = true;
    const client = await this.connection?.catch(() => undefined);
    this.connection = undefined;
    client?.release(true);
  }

  private async withLock<T>(sourceId: string, work: (keepLock: KeepLock) => Promise<T>): Promise<T> {
    if (this.runs++ === 0) this.letGo = keepSession((text) => this.keep(text));
    let client: PoolClient | undefined;
    let wasLost = false;
    const keepLock: KeepLock = async (check) => {
      if (!(await this.holds(client!))) {
        wasLost = true;
        client = await this.acquire(sourceId);
      }
      if (wasLost) await check();
      wasLost = false;
    };
    try {
      client = await this.acquire(sourceId);
      return await work(keepLock);
    } finally {
      const isLast = --this.runs === 0;
      if (isLast) void this.letGo?.();
      if (client) await this.unlock(client, sourceId, isLast);
    }
  }

  private async acquire(sourceId: string): Promise<PoolClient> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (this.closed) throw new SluiceError('unavailable', 'the runtime is stopping');
      const client = await (this.connection ?? this.connect());
      const { rows } = await this.query<{ done: boolean }>(client, { name: 'source-lock', text: LOCK, values: [sourceId] });
      if (rows[0]?.done) return client;
      await sleep(pause);
    }
  }

  /** Whether the session that has taken a lock exists. */
  private holds(client: PoolClient): Promise<boolean> {
    return this.query(client, 'SELECT').then(
      () => true,
      () => false,
    );
  }

  /** After the last run the connection may be idle; nothing else holds or awaits a lock. */
  private async unlock(client: PoolClient, sourceId: string, isLast: boolean): Promise<void> {
    const statement = isLast
      ? { name: 'source-unlock-last', text: `${UNLOCK}, ${STAY_WHEN_IDLE}` }
      : { name: 'source-unlock', text: UNLOCK };
    await this.query(client, { ...statement, values: [sourceId] }).catch(() => {
      // the connection is gone, and the lock with it
    });
  }

  private async keep(text: string): Promise<void> {
    const client = await this.connection;
    if (client) await this.query(client, text);
  }

  /** Runs one statement at a time, because a client cannot run two concurrently. */
  private query<Row extends QueryResultRow>(client: PoolClient, statement: string | QueryConfig): Promise<QueryResult<Row>> {
    const result = this.turn.then(() => client.query<Row>(statement));
    this.turn = result.catch(() => {});
    return result;
  }

  private connect(): Promise<PoolClient> {
    const connecting = this.database.connect().then((client) => {
      // a broken connection may be reported more than once, but it must be released only once
      client.once('error', (error) => {
        client.on('error', () => {});
        this.log.warn({ err: error }, 'source-locks.connection-lost');
        if (this.connection === connecting) this.connection = undefined;
        client.release(true);
      });
      return client;
    });
    connecting.catch(() => (this.connection = undefined));
    return (this.connection = connecting);
  }
}
