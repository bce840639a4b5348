import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, Unavailable } from '#contracts';
import { Lookups } from '#database';
import { KafkaClient, KeptAdmin, METADATA_MAX_AGE_MS, partitionOf } from '#messaging';
import { LOG, type Log } from '#observability';
import { within } from '#service';
import { AppendRepository } from './append.repository.js';

/** An offset of each partition. */
type Offsets = ReadonlyMap<number, number>;

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
 * How far the store has read the log, compared with what the log contains. After an outage, the store replies to requests at once, although it may read
 * for a long time until it knows the deletions that were acknowledged meanwhile.
 */
@Injectable()
export class StoreProgress implements OnApplicationShutdown {
  private readonly admin: KeptAdmin;
  // shared by the requests that come while the brokers, or the database, are being asked
  private readonly ends = new Lookups<typeof EVENTS_TOPIC, Offsets>(async () => new Map([[EVENTS_TOPIC, await this.fetchEnds()]]));
  private readonly stored = new Lookups<typeof EVENTS_TOPIC, Offsets>(async () => new Map([[EVENTS_TOPIC, await this.readOffsets()]]));
  /** As from performance.now(). */
  private askedAt = -Infinity;
  private waiting = 0;

  constructor(
    kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    private readonly events: AppendRepository,
  ) {
    this.admin = new KeptAdmin(kafka, FEW_RETRIES, METADATA_MAX_AGE_MS);
  }

  onApplicationShutdown(): Promise<void> {
    return this.admin.close();
  }

  /**
   * Resolves when the store has read all records that the partitions of these emitters contained at the time of the call.
   * Throws Unavailable if it has not shortly before the deadline, in ms since the epoch.
   */
  async reachEnd(emitterIds: EmitterId[], deadline: number): Promise<void> {
    const ends = (await this.ends.get(EVENTS_TOPIC)) ?? new Map<number, number>();
    const partitions = new Set(emitterIds.map((id) => partitionOf(id, ends.size)));
    const isThere = async () => {
      const stored = await this.stored.get(EVENTS_TOPIC);
      return [...partitions].every((partition) => (stored?.get(partition) ?? 0) >= (ends.get(partition) ?? 0));
    };
    if (await isThere()) return;
    if (this.waiting >= MOST_WAITING) throw behind();
    this.waiting += 1;
    try {
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
        if (Date.now() + pause > deadline - REPLY_MS) throw behind();
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
    try {
      const asked = this.admin.withAdmin((admin) => admin.fetchTopicOffsets(EVENTS_TOPIC));
      const offsets = await within(ASK_WITHIN_MS, asked, () => new Error(`no response within ${ASK_WITHIN_MS} ms`));
      // retention has deleted all records of an empty partition: the store may never have read them
      return new Map(offsets.map(({ partition, low, high }) => [partition, low === high ? 0 : Number(high)]));
    } catch (error) {
      void this.admin.close();
      this.log.warn({ topic: EVENTS_TOPIC, err: error }, 'log.end-unknown');
      throw new Unavailable('Kafka does not return the end of the log', 'the message log does not respond');
    }
  }

  private async readOffsets(): Promise<Offsets> {
    return new Map((await this.events.storedPositions()).map(({ partition, offset }) => [partition, offset]));
  }
}

const behind = (): Unavailable => new Unavailable('the event store has not read the log yet', 'the event store is behind');

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
