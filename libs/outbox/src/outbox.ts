import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap, Optional } from '@nestjs/common';
import type { PoolClient } from 'pg';
import {
  Database,
  END_WHEN_IDLE,
  FairBatches,
  keepSession,
  type PackedBytes,
  packedBytes,
  type Session,
  unpackedBytes,
  type WaitingRows,
} from '#database';
import { type OutgoingRecord, Publisher, refusedOf, shares } from '#messaging';
import { EVENTS_TOPIC, OUTBOX_HEADER, type UserId } from '#contracts';
import { gauge, LOG, type Log } from '#observability';
import { ABOVE_BOUND, LowerBound } from './lower-bound.js';

/** The NOTIFY channel that wakes the relay. */
export const CHANNEL = 'outbox';

/** A record of an account. The records of one topic and key belong to one account: only then do they keep their order. */
export interface AccountRecord extends OutgoingRecord {
  account: UserId;
}

/**
 * SQL that adds the records of `from`, with the columns topic, key, account_id, headers (text or jsonb), value and n, in the order of n; a part of a
 * larger statement. PostgreSQL would copy compressed headers of another table as they are; `|| '{}'` makes a new, uncompressed value.
 */
export const addedToOutbox = (from: string): string =>
  `INSERT INTO outbox (topic, key, account_id, headers, value) SELECT topic, key, account_id, headers::jsonb || '{}', value FROM ${from} ORDER BY n`;

/** SQL that wakes the relay when the transaction is committed. */
export const WAKE_RELAY = `pg_notify('${CHANNEL}', '')`;

/** The parameters of `outboxRows`. */
export const outboxValues = (records: AccountRecord[]): [string[], string[], string[], string[], ...PackedBytes] => [
  records.map(({ topic }) => topic),
  records.map(({ key }) => key),
  records.map(({ account }) => account),
  records.map(({ headers }) => JSON.stringify(headers ?? {})),
  ...packedBytes(records.map(({ value }) => (typeof value === 'string' ? Buffer.from(value) : value))),
];

/**
 * SQL of records as rows, with the columns of `addedToOutbox`. `outboxValues` returns their parameters.
 *
 * @param first the number of the first parameter
 * @param also a further text column, whose array is the parameter before the first
 */
export function outboxRows(first: number, also?: string): string {
  const columns = [...(also === undefined ? [] : [also]), 'topic', 'key', 'account_id', 'headers'];
  const arrays = columns.map((_, n) => `$${first + 4 - columns.length + n}::text[]`);
  return `(SELECT ${columns.join(', ')}, ${unpackedBytes(`$${first + 6}`)} AS value, n
           FROM unnest(${arrays.join(', ')}, $${first + 4}::int[], $${first + 5}::int[])
             WITH ORDINALITY AS each (${columns.join(', ')}, start, length, n)) AS record`;
}

/**
 * Stores records for Kafka in the transaction of the change that they report: both are committed, or neither is. Call it
 * after the changed rows are written (and so locked); then the records of an entity keep the order of its changes.
 */
export async function addToOutbox(transaction: Session, records: AccountRecord[]): Promise<void> {
  if (records.length === 0) return;
  await transaction.query({
    name: 'outbox-add',
    text: `WITH added AS (${addedToOutbox(outboxRows(1))}) SELECT ${WAKE_RELAY}`,
    values: outboxValues(records),
  });
}

/** SQL for a start. */
export const SEND_REFUSED_AGAIN = 'UPDATE outbox SET refused = false WHERE refused';

interface Row {
  id: number;
  topic: string;
  key: string;
  headers: Record<string, string>;
  value: Buffer | null;
}

/** The records to send. */
export const UNSENT: WaitingRows<Row> = {
  name: 'outbox',
  table: 'outbox',
  columns: 'id, topic, key, headers, value',
  key: 'id',
  order: 'id',
  bytes: 'coalesce(octet_length(value), 0) + pg_column_size(headers)',
  indexed: `NOT refused AND ${ABOVE_BOUND}`,
};

/** A notification can get lost with its connection; then a record waits this long. */
const POLL_MS = 5000;
const LOCK_RETRY_MS = 1000;
/** How long a record may wait for others after a batch was sent, unless the app provides OUTBOX_GATHER_MS. One that follows a silence does not wait. */
const GATHER_MS = 5;

/** The token for another time: an app whose records are not urgent needs fewer batches. */
export const OUTBOX_GATHER_MS = Symbol('OUTBOX_GATHER_MS');

/** The relay holds the lock while it is active. Its polls keep the session, also while it waits for the lock. */
const TAKE_TURN = `SELECT pg_try_advisory_lock(hashtext('sluice.outbox')) AS locked, ${END_WHEN_IDLE}`;

/** How often a replica looks for records that are not sent, whether or not its relay is the active one. */
const LOOK_EVERY_MS = 10_000;
const DELAYED_SECONDS = 30;

const oldest = gauge(
  'outbox_oldest_seconds',
  'Age of the oldest record of the outbox that Kafka does not have. Refused records do not count.',
);
const refused = gauge(
  'outbox_refused_records',
  'Records of the outbox that Kafka refuses, such as because of their size. They stay in the table.',
);

/** Marks an event's record as a possible copy, so that routing delivers it once. */
const recordOf = ({ id, topic, key, headers, value }: Row): OutgoingRecord => ({
  topic,
  key,
  headers: topic === EVENTS_TOPIC ? { ...headers, [OUTBOX_HEADER]: String(id) } : headers,
  value,
});

/**
 * Sends the records of the outbox to Kafka, those of an account in the order of their ids, and deletes them once Kafka has acknowledged them. While
 * many wait, the accounts take turns. One relay per database is active at a time (an advisory lock), so the order holds with several replicas, too.
 * If its process is frozen for 20 s, another takes over. After a crash between the two steps, records are sent again; their readers recognise them by
 * their ids.
 */
@Injectable()
export class OutboxRelay implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly batches = new FairBatches(UNSENT);
  /** While the relay is active. */
  private bound: LowerBound | undefined;
  private stopping = false;
  private delayed = false;
  private looking: NodeJS.Timeout | undefined;
  private work: Promise<void> = Promise.resolve();
  private wake: () => void = () => {};

  constructor(
    private readonly database: Database,
    private readonly publisher: Publisher,
    @Inject(LOG) private readonly log: Log,
    @Optional() @Inject(OUTBOX_GATHER_MS) private readonly gatherMs = GATHER_MS,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run();
    this.looking = setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    clearInterval(this.looking);
    this.wake();
    await this.work;
  }

  /** Reports records that no relay sends, whatever the cause; but a refused one is reported when it is refused, and would hide the others. */
  async look(): Promise<void> {
    try {
      const { rows } = await this.database.query<{ age: number | null; refused: number }>(
        `SELECT (SELECT extract(epoch FROM clock_timestamp() - added_at)::float8 FROM outbox WHERE NOT refused AND id > $1 ORDER BY id LIMIT 1) AS age,
                (SELECT count(*) FROM outbox WHERE refused) AS refused`,
        [this.bound?.value ?? 0],
      );
      const age = rows[0]?.age ?? 0;
      oldest.set(age);
      refused.set(rows[0]?.refused ?? 0);
      const delayed = age > DELAYED_SECONDS;
      if (delayed && !this.delayed) this.log.warn({ seconds: Math.round(age) }, 'outbox.delayed');
      this.delayed = delayed;
    } catch {
      // the database is down: readiness reports that
    }
  }

  private async run(): Promise<void> {
    let isFirst = true;
    while (!this.stopping) {
      let client: PoolClient | undefined;
      try {
        client = await this.database.connect();
        client.on('error', () => this.wake());
        client.on('notification', () => this.wake());
        if (!(await this.takeTurn(client))) continue;
        // the limits of the topics may have been raised
        if (isFirst) await client.query(SEND_REFUSED_AGAIN);
        isFirst = false;
        await this.relay(client);
      } catch (error) {
        this.log.warn({ err: error }, 'outbox.interrupted');
        await this.sleep(LOCK_RETRY_MS);
      } finally {
        this.bound = undefined;
        // closing the connection also releases the lock and ends the LISTEN
        client?.removeAllListeners('notification');
        client?.release(true);
      }
    }
  }

  /** Waits until no other relay is active. Returns false if the service stops before. */
  private async takeTurn(client: PoolClient): Promise<boolean> {
    while (!this.stopping) {
      const { rows } = await client.query<{ locked: boolean }>(TAKE_TURN);
      if (rows[0]?.locked) return true;
      await this.sleep(LOCK_RETRY_MS);
    }
    return false;
  }

  private async relay(client: PoolClient): Promise<void> {
    await client.query(`LISTEN ${CHANNEL}`);
    const bound = (this.bound = new LowerBound(client));
    while (!this.stopping) {
      // set up before the query, so that a record that is added meanwhile wakes the relay
      const woken = this.sleep(POLL_MS);
      await bound.raise();
      const { rows, isFull } = await this.batches.next(client);
      if (rows.length === 0) {
        await woken;
        continue;
      }
      this.wake();
      for (const share of shares(rows)) {
        const sent = await this.send(client, share);
        await client.query({ name: 'outbox-sent', text: 'DELETE FROM outbox WHERE id = ANY($1)', values: [sent.map(({ id }) => id)] });
      }
      bound.sent();
      if (!isFull) await sleep(this.gatherMs);
    }
  }

  /** Returns those that Kafka has: all but the ones that it refuses. */
  private async send(client: PoolClient, rows: Row[]): Promise<Row[]> {
    const notSent = await this.sendAll(client, rows);
    for (const row of notSent) await this.setAside(row);
    return rows.filter((row) => !notSent.has(row));
  }

  /** Sends them, and returns those that Kafka refuses. */
  private async sendAll(client: PoolClient, rows: Row[]): Promise<Set<Row>> {
    // Kafka can take minutes
    const release = keepSession((text) => client.query(text));
    try {
      const refusals = await refusedOf(rows, (part) => this.publisher.send(part.map(recordOf)));
      return new Set(refusals.map(({ item }) => item));
    } finally {
      await release();
    }
  }

  /** It must not hold up the others. */
  private async setAside({ id, topic, key, value }: Row): Promise<void> {
    await this.database.query('UPDATE outbox SET refused = true WHERE id = $1', [id]);
    this.log.error({ outbox_id: id, topic, key, bytes: value?.length }, 'outbox.record-refused');
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
