import type { OnApplicationShutdown } from '@nestjs/common';
import type { Admin } from 'kafkajs';
import { Unavailable } from '#contracts';
import { Lookups } from '#database';
import { type KafkaClient, KeptAdmin, METADATA_MAX_AGE_MS, partitionOf } from '#messaging';
import type { Log } from '#observability';
import { within } from '#service';

/** The next offset of each partition. */
export type Offsets = ReadonlyMap<number, number>;

/** The brokers are asked at most once in this time. */
const ASK_EVERY_MS = 20;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
/** Brokers that do not respond within this time must not occupy the requests that ask them. */
const ASK_WITHIN_MS = 2000;
/** The time that remains for the reply before the caller stops waiting. */
const REPLY_MS = 500;
/** Half of the requests that a service handles at a time: the others do not wait for the log. */
const MOST_WAITING = 64;
/** Few, because a caller waits. */
const FEW_RETRIES = { retry: { retries: 3 } };

/**
 * How far a reader has read a topic, compared with what the topic contains. After an outage, a service replies to requests at once, although it may read
 * for a long time until it knows what was acknowledged meanwhile.
 */
export abstract class LogProgress implements OnApplicationShutdown {
  private readonly admin: KeptAdmin;
  // shared by the requests that come while the brokers, or the reader, are being asked
  private readonly ends = new Lookups<string, Offsets>(async () => new Map([[this.topic, await this.fetchEnds()]]));
  private readonly read = new Lookups<string, Offsets>(async () => new Map([[this.topic, await this.readTo()]]));
  /** As from performance.now(). */
  private askedAt = -Infinity;
  private waiting = 0;

  /** @param reader for errors, such as `the event store` */
  protected constructor(
    kafka: Pick<KafkaClient, 'admin'>,
    private readonly log: Log,
    private readonly topic: string,
    private readonly reader: string,
  ) {
    this.admin = new KeptAdmin(kafka, FEW_RETRIES, METADATA_MAX_AGE_MS);
  }

  /** How far the reader is, in all processes of the service. */
  protected abstract readTo(): Promise<Offsets>;

  onApplicationShutdown(): Promise<void> {
    return this.admin.close();
  }

  /**
   * Resolves when the reader has read all records that the topic contained at the time of the call: those in the partitions of the keys, or in all.
   * Throws Unavailable if it has not shortly before the deadline, in ms since the epoch.
   */
  async reachEnd(deadline: number, keys?: string[]): Promise<void> {
    const ends = (await this.ends.get(this.topic)) ?? new Map<number, number>();
    const partitions = new Set(keys?.map((key) => partitionOf(key, ends.size)) ?? ends.keys());
    const isThere = async () => {
      const read = await this.read.get(this.topic);
      return [...partitions].every((partition) => (read?.get(partition) ?? 0) >= (ends.get(partition) ?? 0));
    };
    if (await isThere()) return;
    if (this.waiting >= MOST_WAITING) throw this.behind();
    this.waiting += 1;
    try {
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
        if (Date.now() + pause > deadline - REPLY_MS) throw this.behind();
        await sleep(pause);
        if (await isThere()) return;
      }
    } finally {
      this.waiting -= 1;
    }
  }

  private async fetchEnds(): Promise<Offsets> {
    const restMs = this.askedAt + ASK_EVERY_MS - performance.now();
    if (restMs > 0) await sleep(restMs);
    this.askedAt = performance.now();
    const offsets = await this.ask((admin) => admin.fetchTopicOffsets(this.topic));
    // retention has deleted all records of an empty partition: the reader may never have read them
    return new Map(offsets.map(({ partition, low, high }) => [partition, low === high ? 0 : Number(high)]));
  }

  /** Asks the brokers. Throws Unavailable if they do not respond within two seconds. */
  protected async ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    try {
      return await within(ASK_WITHIN_MS, this.admin.withAdmin(question), () => new Unavailable(`no response within ${ASK_WITHIN_MS} ms`));
    } catch (error) {
      void this.admin.close();
      this.log.warn({ topic: this.topic, err: error }, 'log.offsets-unknown');
      throw new Unavailable('Kafka does not return the offsets of the log', 'the message log does not respond');
    }
  }

  private behind(): Unavailable {
    return new Unavailable(`${this.reader} has not read the log yet`, `${this.reader} is behind`);
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
