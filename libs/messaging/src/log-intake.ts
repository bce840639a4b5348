import type { KafkaMessage } from 'kafkajs';
import type { Log } from '#observability';
import { LogRecord } from './log-record.js';
import type { Position } from './watermark.js';

/** Thrown by `handle` when somebody else has moved the partition's position: it's read again from where it stands now. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

export interface LogIntakeOptions {
  topic: string;
  /** Where each of these partitions is to be taken up; a partition without a position is read from its beginning. */
  positions(partitions: number[]): Promise<Map<number, Position>>;
  /**
   * Takes a batch of a partition, in the order of the log, and keeps `after` in the same transaction as its effects,
   * on the condition that the kept position still is `before`; otherwise throws Fenced. Any other error: again, later.
   */
  handle(partition: number, records: LogRecord[], before: Position, after: Position): Promise<void>;
}

/** What a fetch has brought of a partition. `fetchedOffset`: where it was asked from. */
export interface FetchedBatch {
  partition: number;
  messages: KafkaMessage[];
  fetchedOffset: number;
  highWatermark: number;
}

/** A batch is as large as a transaction should be, whatever a fetch brings: a fetch is bounded before it's decompressed. */
const BATCH = { records: 4000, bytes: 4 * 1024 * 1024 };
/** What a partition may have waiting while a batch is handled, so that the next one is there when it's done. */
const WAITING = { records: 2 * BATCH.records, bytes: 2 * BATCH.bytes };
/** How long a rebalance waits for batches that are under way. One that takes longer meets the fence. */
const SETTLE_MS = 5000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;
/** A batch that fails as often as this, which takes half a minute, doesn't fail because something restarts. */
const MANY_TRIES = 12;

/** An assigned partition on its way through. */
class Feed {
  readonly waiting: LogRecord[] = [];
  bytes = 0;
  dropped = false;
  working: Promise<void> | undefined;
  /** The offset that is taken next, and the clock of the record before it. */
  next: number;
  clock: number;
  /** Where a fetch began that left a gap. */
  gapAt: number | undefined;

  constructor(
    readonly partition: number,
    /** What is kept: all below it has been handled. */
    public position: Position,
  ) {
    this.next = position.offset;
    this.clock = position.clock;
  }

  get hasRoom(): boolean {
    return this.waiting.length < WAITING.records && this.bytes < WAITING.bytes;
  }
}

/**
 * Hands the records of assigned partitions to `handle` in batches, while the next ones are fetched: the part of a log
 * consumer that knows no Kafka, so that crashes and rebalances can be simulated.
 */
export class LogIntake {
  private feeds = new Map<number, Feed>();
  private generation = 0;
  private wakers: (() => void)[] = [];

  /** reread: the partition is to be fetched from this offset on. */
  constructor(
    private readonly log: Log,
    private readonly options: LogIntakeOptions,
    private readonly reread: (partition: number, offset: number) => void,
  ) {}

  /** The group has given us these partitions and no others. What waits is dropped: it's fetched again, by whoever has it now. */
  async assign(partitions: number[]): Promise<void> {
    const generation = ++this.generation;
    await this.dropAll();
    await this.begin(partitions, generation);
  }

  /** Takes no more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.generation += 1;
    await this.dropAll();
  }

  /** Whether the partition's records would be taken; false too while its position is being read. */
  hasRoom(partition: number): boolean {
    return this.feeds.get(partition)?.hasRoom ?? false;
  }

  /** Resolves when there may be room again. */
  room(): Promise<void> {
    return new Promise((resolve) => this.wakers.push(resolve));
  }

  /** Takes what a fetch brought; false when that isn't what comes next, and `reread` says from where it's wanted. */
  take({ partition, messages, fetchedOffset, highWatermark }: FetchedBatch): boolean {
    const feed = this.feeds.get(partition);
    if (!feed || !this.follows(feed, fetchedOffset, highWatermark)) return false;
    for (const message of messages) {
      const offset = Number(message.offset);
      if (offset < feed.next) continue;
      feed.clock = Math.max(feed.clock, Number(message.timestamp));
      feed.next = offset + 1;
      const record = new LogRecord(this.options.topic, partition, message, feed.clock);
      feed.waiting.push(record);
      feed.bytes += record.value?.length ?? 0;
    }
    feed.working ??= this.work(feed).finally(() => (feed.working = undefined));
    return true;
  }

  private follows(feed: Feed, fetchedOffset: number, highWatermark: number): boolean {
    const { partition, next } = feed;
    const fields = { topic: this.options.topic, partition, expected: next, fetched: fetchedOffset };
    if (fetchedOffset > next) {
      if (feed.gapAt !== fetchedOffset) {
        feed.gapAt = fetchedOffset;
        this.reread(partition, next);
        return false;
      }
      // asked for again and still not there: the topic's retention was faster than we
      this.log.error({ ...fields, missed: fetchedOffset - next }, 'log.records-missed');
    } else if (fetchedOffset < next && highWatermark < next) {
      // a broker that lost its disk, or a topic that was made anew: what is in it now is read as it is
      this.log.error({ ...fields, end: highWatermark }, 'log.shorter-than-position');
      feed.next = fetchedOffset;
      feed.clock = 0;
    }
    feed.gapAt = undefined;
    return true;
  }

  private async work(feed: Feed): Promise<void> {
    let [pause, tries] = [FIRST_PAUSE_MS, 1];
    while (!feed.dropped && feed.waiting.length > 0) {
      const records = nextBatch(feed.waiting);
      const last = records.at(-1) as LogRecord;
      const after: Position = { offset: last.offset + 1, clock: last.clock };
      const fields = { topic: this.options.topic, partition: feed.partition, offset: feed.position.offset };
      try {
        await this.options.handle(feed.partition, records, feed.position, after);
        feed.position = after;
        feed.waiting.splice(0, records.length);
        feed.bytes -= records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
        [pause, tries] = [FIRST_PAUSE_MS, 1];
        this.wake();
      } catch (error) {
        if (feed.dropped) return;
        if (error instanceof Fenced) {
          this.log.info(fields, 'log.fenced');
          feed.dropped = true;
          this.feeds.delete(feed.partition);
          return this.begin([feed.partition], this.generation);
        }
        this.log[tries < MANY_TRIES ? 'warn' : 'error']({ ...fields, tries, err: error }, 'log.batch-failed');
        tries += 1;
        await sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  /** Reads where the partitions stand, for as long as it takes, and has them fetched from there. */
  private async begin(partitions: number[], generation: number): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; generation === this.generation; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        const kept = await this.options.positions(partitions);
        if (generation !== this.generation) return;
        for (const partition of partitions) {
          const feed = new Feed(partition, kept.get(partition) ?? { offset: 0, clock: 0 });
          this.feeds.set(partition, feed);
          this.reread(partition, feed.next);
        }
        return this.wake();
      } catch (error) {
        this.log.warn({ topic: this.options.topic, partitions, err: error }, 'log.position-unknown');
        await sleep(pause);
      }
    }
  }

  private async dropAll(): Promise<void> {
    const feeds = [...this.feeds.values()];
    this.feeds = new Map();
    for (const feed of feeds) feed.dropped = true;
    this.wake();
    await Promise.race([Promise.all(feeds.map(async ({ working }) => working)), sleep(SETTLE_MS)]);
  }

  private wake(): void {
    for (const waker of this.wakers.splice(0)) waker();
  }
}

function nextBatch(waiting: LogRecord[]): LogRecord[] {
  let [count, bytes] = [0, 0];
  for (const { value } of waiting) {
    bytes += value?.length ?? 0;
    if (count === BATCH.records || (count > 0 && bytes > BATCH.bytes)) break;
    count += 1;
  }
  return waiting.slice(0, count);
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
