import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Inject, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '#database';
import { EVENTS_TOPIC, OUTBOX_HEADER } from '#contracts';
import { type OutgoingRecord, Publisher, shares } from '#messaging';
import { LOG, type Log } from '#observability';
import { CHANNEL } from './outbox.js';

interface Row {
  id: number;
  topic: string;
  key: string;
  headers: Record<string, string>;
  value: Buffer | null;
}

const BATCH = 500;
/** A notification can get lost with its connection; then a record waits this long. */
const POLL_MS = 1000;
const LOCK_RETRY_MS = 1000;
/** How long a record may wait for others after a batch was sent. One that follows a silence does not wait. */
const GATHER_MS = 5;

/** Marks an event's record as a possible copy, so that routing delivers it once. */
const recordOf = ({ id, topic, key, headers, value }: Row): OutgoingRecord => ({
  topic,
  key,
  headers: topic === EVENTS_TOPIC ? { ...headers, [OUTBOX_HEADER]: String(id) } : headers,
  value,
});

/**
 * Sends the records of the outbox to Kafka, in the order of their ids, and deletes them once Kafka has acknowledged them. One relay per
 * database is active at a time (an advisory lock), so the order holds with several replicas, too. After a crash
 * between the two steps, records are sent again; their readers recognise them by their ids.
 */
@Injectable()
export class OutboxRelay implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private work: Promise<void> = Promise.resolve();
  private wake: () => void = () => {};

  constructor(
    private readonly database: Database,
    private readonly publisher: Publisher,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.wake();
    await this.work;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      let client: PoolClient | undefined;
      try {
        client = await this.database.connect();
        client.on('error', () => this.wake());
        client.on('notification', () => this.wake());
        const { rows } = await client.query<{ locked: boolean }>("SELECT pg_try_advisory_lock(hashtext('sluice.outbox')) AS locked");
        if (rows[0]?.locked) await this.relay(client);
        else await this.sleep(LOCK_RETRY_MS);
      } catch (error) {
        this.log.warn({ err: error }, 'outbox.interrupted');
        await this.sleep(LOCK_RETRY_MS);
      } finally {
        // closing the connection also releases the lock and ends the LISTEN
        client?.removeAllListeners('notification');
        client?.release(true);
      }
    }
  }

  private async relay(client: PoolClient): Promise<void> {
    await client.query(`LISTEN ${CHANNEL}`);
    while (!this.stopping) {
      // set up before the query, so that a record that is added meanwhile wakes the relay
      const woken = this.sleep(POLL_MS);
      const { rows } = await client.query<Row>({
        name: 'outbox-next',
        text: 'SELECT id, topic, key, headers, value FROM outbox ORDER BY id LIMIT $1',
        values: [BATCH],
      });
      if (rows.length === 0) {
        await woken;
        continue;
      }
      for (const share of shares(rows)) {
        await this.publisher.send(share.map(recordOf));
        await client.query({ name: 'outbox-sent', text: 'DELETE FROM outbox WHERE id = ANY($1)', values: [share.map(({ id }) => id)] });
      }
      if (rows.length < BATCH) await sleep(GATHER_MS);
    }
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
