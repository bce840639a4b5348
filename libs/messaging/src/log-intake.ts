import type { KafkaMessage } from 'kafkajs';
import type { Log } from '#observability';
import { unrefSleep } from './consumer-life.js';
import { type Fetched, LogContinuity, reportMissed, reportReplaced } from './log-continuity.js';
import { LogRecord } from './log-record.js';
import { repeatedFailures } from './outcomes.js';
import { clockAfter, type Position } from './watermark.js';

/** Thrown by `handle` if another process has advanced the position of the partition; it is then read again from its current position. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

export interface LogIntakeOptions {
  topic: string;
  /** Of the consumer, for the log. */
  group?: string;
  /** The group belongs to this consumer alone and is deleted at the end. It begins at the positions of another group, whose consumer reports lost records. */
  ownGroup?: boolean;
  /** Whether work fails because a store is down; default: never. */
  isTransient?(error: unknown): boolean;
  /** Returns the stored positions of the partitions; a partition without one is read from the beginning. */
  positions(partitions: number[]): Promise<Map<number, Position>>;
  /**
   * Handles a batch of a partition, in the order of the topic, and stores `after` in the same transaction as its effects,
   * provided that the stored position is still `before`; otherwise throws Fenced. After any other error, the batch is retried.
   *
   * Within a batch offsets and clocks ascend. The first record of a batch may have a lower offset than `before` (the log was replaced) or a lower clock
   * (the clock was wrong, or the log was replaced). A batch without records moves the position behind hidden ones.
   */
  handle(partition: number, records: LogRecord[], before: Position, after: Position): Promise<void>;
}

/** The consumer that fetches the records. */
export interface IntakeConsumer {
  /** Fetches the partition from this offset next. */
  seek(partition: number, offset: number): void;
  /** Fetches nothing of these partitions, and all others again. */
  pauseOnly(partitions: number[]): void;
}

/** The records of a partition in a fetch. */
export interface FetchedBatch extends Fetched {
  partition: number;
  messages: KafkaMessage[];
}

/** The maximum size of a batch, as suits a transaction; a fetch is limited only before decompression. */
const BATCH = { records: 4000, bytes: 4 * 1024 * 1024 };
/**
 * How much of a partition may wait while a batch is handled, so that the next batch is ready. Batches of small records are handled fast: half a batch more
 * covers the time in which a partition is resumed.
 */
const WAITING = { records: 2.5 * BATCH.records, bytes: 2 * BATCH.bytes };
/**
 * The bytes of all partitions that may wait, however many there are: a service has 512 MiB. One fetch of each partition may exceed it: a partition that has
 * nothing waiting takes one, even if partitions whose batches fail have used up the limit.
 */
const WAITING_BYTES_IN_ALL = 32 * 1024 * 1024;
/** How long a rebalance waits for batches in progress. A longer batch is stopped by the fence. */
const SETTLE_MS = 5000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 3000;

/** The state of an assigned partition. */
class AssignedPartition {
  readonly waiting: LogRecord[] = [];
  bytes = 0;
  /** The position behind the waiting records, and behind the hidden ones that follow them. */
  end: Position;
  /** The log was replaced, and has had no visible record yet: the first one shows that to `handle`. */
  replaced = false;
  dropped = false;
  working: Promise<void> | undefined;
  /** When work began, or a batch was handled, as from performance.now(). */
  progressedAt = 0;
  /** The end of the log at the last fetch. */
  logEnd = 0;
  continuity: LogContinuity;
  /** The clock of the record before the next one. */
  clock: number;

  constructor(
    readonly partition: number,
    /** The stored position: every record below it has been handled. */
    public position: Position,
  ) {
    this.continuity = new LogContinuity(position);
    this.clock = position.clock;
    this.end = position;
  }

  /** Whether the stored position is behind everything that was taken. */
  get isDone(): boolean {
    return this.position === this.end;
  }

  /** Whether more may wait. `isFull`: all partitions together have used up their limit. */
  hasCapacity(isFull: boolean): boolean {
    if (this.waiting.length === 0) return true;
    return !isFull && this.waiting.length < WAITING.records && this.bytes < WAITING.bytes;
  }
}

/**
 * Passes the records of assigned partitions to `handle` in batches, while the next ones are fetched. It is the part of a log
 * consumer that does not use Kafka, so that crashes and rebalances can be simulated.
 */
export class LogIntake {
  private partitions = new Map<number, AssignedPartition>();
  /** These, also while their positions are being read. */
  private assigned: number[] = [];
  /** Since when the positions of these are being read, as from performance.now(). */
  private readonly unknownSince = new Map<number, number>();
  private readonly batchFailed: ReturnType<typeof repeatedFailures>;
  private readonly positionUnknown: ReturnType<typeof repeatedFailures>;
  private generation = 0;
  private isStopped = false;

  constructor(
    private readonly log: Log,
    private readonly options: LogIntakeOptions,
    private readonly consumer: IntakeConsumer,
  ) {
    const { topic, isTransient = () => false } = options;
    this.batchFailed = repeatedFailures(log, 'log.batch-failed', { topic }, { isTransient });
    this.positionUnknown = repeatedFailures(log, 'log.position-unknown', { topic }, { isTransient });
  }

  /** The group has assigned exactly these partitions to us. Waiting records are dropped; the new owner fetches them again. */
  async assign(partitions: number[]): Promise<void> {
    const generation = ++this.generation;
    this.assigned = partitions;
    await this.dropAll();
    await this.begin(partitions, generation);
  }

  /** The database was restored: reads the partitions again from the positions in it. */
  rewind(): Promise<void> {
    return this.assign(this.assigned);
  }

  /** The log may have been replaced: requests what verifies it. */
  reverify(): void {
    for (const { partition, continuity } of this.partitions.values()) {
      continuity.reverify();
      this.consumer.seek(partition, continuity.from);
    }
  }

  /** The records of the assigned partitions that have not been handled, up to the ends of the log at the last fetches. */
  get lag(): number {
    return [...this.partitions.values()].reduce((sum, { logEnd, position }) => sum + Math.max(0, logEnd - position.offset), 0);
  }

  /** How long the batch that has taken longest has been in progress, with its failed attempts, or a position could not be read. */
  get oldestMs(): number {
    const now = performance.now();
    const begun = [...this.partitions.values()].flatMap(({ isDone, progressedAt }) => (isDone ? [] : [progressedAt]));
    return now - Math.min(now, ...begun, ...this.unknownSince.values());
  }

  /** Accepts no more; resolves when the batches in progress have ended. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.dropAll();
  }

  /**
   * Pauses the partitions that have no capacity, and those whose positions are being read. If their records waited in kafkajs instead, all partitions of the
   * broker would wait: kafkajs fetches nothing more from a broker before every batch of the last fetch is handled.
   */
  private pauseFull(): void {
    let sum = 0;
    for (const { bytes } of this.partitions.values()) sum += bytes;
    const isFull = sum >= WAITING_BYTES_IN_ALL;
    this.consumer.pauseOnly(this.assigned.filter((partition) => !this.partitions.get(partition)?.hasCapacity(isFull)));
  }

  /**
   * Takes the records of a fetch; there may be no visible ones. Returns false if they are not the next ones; then the right ones are fetched next. It takes
   * all of them, because they are in memory already, and pauses the partition if it has too many then.
   */
  take(fetched: FetchedBatch): boolean {
    const { partition, messages } = fetched;
    const assigned = this.partitions.get(partition);
    if (!assigned || !this.verifyFetch(assigned, fetched)) return false;
    assigned.logEnd = fetched.highWatermark;
    for (const message of messages) {
      const [offset, timestamp] = [Number(message.offset), Number(message.timestamp)];
      if (offset < assigned.continuity.next) continue;
      assigned.clock = clockAfter(assigned.clock, timestamp);
      assigned.continuity.advance(offset, timestamp);
      const record = new LogRecord(this.options.topic, partition, message, assigned.clock);
      assigned.waiting.push(record);
      assigned.bytes += record.bytes;
      assigned.end = positionAfter(record);
      assigned.replaced = false;
    }
    assigned.continuity.skipHidden(fetched);
    const { identified } = assigned.continuity;
    if (identified && identified.offset > assigned.end.offset && !assigned.replaced)
      assigned.end = { ...identified, clock: assigned.clock };
    assigned.working ??= this.work(assigned).finally(() => (assigned.working = undefined));
    this.pauseFull();
    return true;
  }

  /** The offset of the next record. undefined: the partition is not assigned to us, or its position is not known yet. */
  next(partition: number): number | undefined {
    return this.partitions.get(partition)?.continuity.next;
  }

  /** The partition ends at `end`, although its next record would have been `next`: it has another log. */
  endsEarly(partition: number, end: number, next: number): void {
    const assigned = this.partitions.get(partition);
    if (assigned?.continuity.endsEarly(end, next)) this.replace(assigned, { fetched: end, end });
  }

  private verifyFetch(assigned: AssignedPartition, fetched: FetchedBatch): boolean {
    const { partition, continuity } = assigned;
    const at = { ...this.at(assigned), fetched: fetched.fetchedOffset };
    const continuation = continuity.check(fetched);
    if (continuation.kind === 'continues') {
      if (continuation.missed > 0 && !this.options.ownGroup) reportMissed(this.log, { ...at, missed: continuation.missed });
      return true;
    }
    if (continuation.kind === 'refetch') this.consumer.seek(partition, continuation.from);
    else this.replace(assigned, { fetched: fetched.fetchedOffset, end: fetched.highWatermark });
    return false;
  }

  /** The partition has another log, which is read from its beginning. */
  private replace(assigned: AssignedPartition, log: { fetched: number; end: number }): void {
    if (!this.options.ownGroup) reportReplaced(this.log, { ...this.at(assigned), ...log });
    assigned.continuity = new LogContinuity({ offset: 0, clock: 0 });
    assigned.clock = 0;
    assigned.replaced = true;
    this.consumer.seek(assigned.partition, 0);
  }

  private at({ partition, continuity }: AssignedPartition) {
    return { group: this.options.group, topic: this.options.topic, partition, expected: continuity.next };
  }

  private async work(assigned: AssignedPartition): Promise<void> {
    let [pause, tries] = [FIRST_PAUSE_MS, 1];
    assigned.progressedAt = performance.now();
    while (!assigned.dropped && !assigned.isDone) {
      const records = nextBatch(assigned.waiting);
      const last = records.at(-1);
      const after = last && records.length < assigned.waiting.length ? positionAfter(last) : assigned.end;
      const fields = { partition: assigned.partition, offset: assigned.position.offset };
      try {
        await this.options.handle(assigned.partition, records, assigned.position, after);
        assigned.position = after;
        assigned.progressedAt = performance.now();
        assigned.waiting.splice(0, records.length);
        assigned.bytes -= records.reduce((sum, { bytes }) => sum + bytes, 0);
        [pause, tries] = [FIRST_PAUSE_MS, 1];
        this.pauseFull();
      } catch (error) {
        if (assigned.dropped) return;
        if (error instanceof Fenced) {
          this.log.info({ topic: this.options.topic, ...fields }, 'log.fenced');
          assigned.dropped = true;
          this.partitions.delete(assigned.partition);
          this.pauseFull();
          return this.begin([assigned.partition], this.generation);
        }
        this.batchFailed({ ...fields, tries, err: error });
        tries += 1;
        await unrefSleep(pause);
        pause = Math.min(pause * 2, MAX_PAUSE_MS);
      }
    }
  }

  /** Reads the positions of the partitions, retrying until it succeeds, and has them fetched from there. */
  private async begin(partitions: number[], generation: number): Promise<void> {
    const isOver = () => this.isStopped || generation !== this.generation;
    if (!isOver()) for (const partition of partitions) this.unknownSince.set(partition, performance.now());
    for (let pause = FIRST_PAUSE_MS; !isOver(); pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        const kept = await this.options.positions(partitions);
        if (isOver()) return;
        for (const partition of partitions) {
          const assigned = new AssignedPartition(partition, kept.get(partition) ?? { offset: 0, clock: 0 });
          this.partitions.set(partition, assigned);
          this.unknownSince.delete(partition);
          this.consumer.seek(partition, assigned.continuity.from);
        }
        return this.pauseFull();
      } catch (error) {
        this.positionUnknown({ partitions, err: error });
        await unrefSleep(pause);
      }
    }
  }

  private async dropAll(): Promise<void> {
    const all = [...this.partitions.values()];
    this.partitions = new Map();
    this.unknownSince.clear();
    for (const assigned of all) assigned.dropped = true;
    this.pauseFull();
    await Promise.race([Promise.all(all.map(async ({ working }) => working)), unrefSleep(SETTLE_MS)]);
  }
}

const positionAfter = ({ offset, clock, timestamp }: LogRecord): Position => ({ offset: offset + 1, clock, timestamp });

function nextBatch(waiting: LogRecord[]): LogRecord[] {
  let [count, sum] = [0, 0];
  for (const [index, { bytes, offset, clock }] of waiting.entries()) {
    sum += bytes;
    if (count === BATCH.records || (count > 0 && sum > BATCH.bytes)) break;
    const before = waiting[index - 1];
    if (before && (offset < before.offset || clock < before.clock)) break;
    count += 1;
  }
  return waiting.slice(0, count);
}
