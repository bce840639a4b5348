import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Batch, Consumer, EachBatchPayload } from 'kafkajs';
import { kafkaName, type Service, Unavailable } from '#contracts';
import { LOG, type Log } from '#observability';
import { deleteGroups } from './consumer-life.js';
import { KafkaClient } from './kafka.js';
import { withEmptyBatches } from './kafkajs-groups.js';
import { fetchedOf, hasNoRecords } from './log-continuity.js';
import { LogRecord } from './log-record.js';
import { clockAfter } from './watermark.js';

/** A part of a partition: `to` is exclusive. */
interface LogRange {
  from: number;
  to: number;
  /** The clock that the records have at least; by default it begins with the first record. */
  clock?: number;
}

/** The time that a read may take. */
interface TimeLimit {
  withinMs?: number;
  /** Limits the time for `all` records, or for each `batch`: for a caller that waits for the end, however far it is. */
  limits?: 'all' | 'batch';
}

/** By partition. */
export type LogRanges = Map<number, LogRange>;

const READ_MS = 25_000;
/** Read at once: the records occupy the event loop for a few milliseconds. A batch of a producer that is larger is read whole. */
const READ_BYTES = 256 * 1024;
/** Few, because a caller waits for the result. */
const FEW_RETRIES = { retry: { retries: 3 } };

/** Reads parts of a topic on demand, independently of the consumers of the process, and whenever these leave it time. Commits nothing. */
@Injectable()
export class LogReader {
  private readonly spare = new SpareTime();

  constructor(
    private readonly kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** The offsets that Kafka still has of each partition. */
  bounds(topic: string): Promise<LogRanges> {
    return this.kafka.withAdmin(async (admin) => {
      const offsets = await admin.fetchTopicOffsets(topic);
      return new Map(offsets.map(({ partition, low, high }) => [partition, { from: Number(low), to: Number(high) }]));
    }, FEW_RETRIES);
  }

  /** The offsets of the records that were written to each partition at a time (ms) or later and still exist. */
  since(topic: string, ms: number): Promise<LogRanges> {
    return this.kafka.withAdmin(async (admin) => {
      const [all, found] = [await admin.fetchTopicOffsets(topic), await admin.fetchTopicOffsetsByTimestamp(topic, ms)];
      const first = new Map(found.map(({ partition, offset }) => [partition, Number(offset)]));
      return new Map(
        all.map(({ partition, low, high }) => {
          const from = first.get(partition) ?? -1;
          return [partition, { from: from < 0 ? Number(high) : Math.max(from, Number(low)), to: Number(high) }];
        }),
      );
    }, FEW_RETRIES);
  }

  /**
   * Reads these ranges, each in order, until `take` returns false for its partition. Throws Unavailable when that takes too long.
   *
   * @param reader the service whose consumer groups the temporary one is among
   */
  async read(
    reader: Service | 'operator',
    topic: string,
    ranges: LogRanges,
    take: Take,
    { withinMs = READ_MS, limits = 'all' }: TimeLimit = {},
  ): Promise<void> {
    const group = kafkaName(`${reader}.reader-${randomUUID()}`);
    const consumer = this.kafka.consumer({
      ...{ groupId: group, allowAutoTopicCreation: false, maxWaitTimeInMs: 200, maxBytesPerPartition: READ_BYTES, maxBytes: READ_BYTES },
      ...FEW_RETRIES,
    });
    const reading = new Reading(consumer, topic, ranges, take, this.spare);
    if (reading.isComplete) return;
    if (withinMs <= 0) throw tooLate();
    try {
      await reading.run({ withinMs, limits });
    } finally {
      await consumer.disconnect().catch((error: Error) => this.log.warn({ err: error }, 'log-reader.not-closed'));
      await deleteGroups(this.kafka, this.log, [group]);
    }
  }
}

const tooLate = () => new Unavailable('the log could not be read in time', 'that part of the log could not be read in time');

/** Returns false if no more records of the partition are needed. */
type Take = (partition: number, records: LogRecord[]) => Promise<boolean> | boolean;

/** One call of `LogReader.read`. */
class Reading {
  /** The ranges that have not been read yet. */
  private readonly open: LogRanges;
  private readonly clocks = new Map<number, number>();
  private readonly done = Promise.withResolvers<void>();

  constructor(
    private readonly consumer: Consumer,
    private readonly topic: string,
    ranges: LogRanges,
    private readonly take: Take,
    private readonly spare: SpareTime,
  ) {
    this.open = new Map([...ranges].filter(([, { from, to }]) => from < to).map(([partition, range]) => [partition, { ...range }]));
  }

  get isComplete(): boolean {
    return this.open.size === 0;
  }

  /** Resolves when everything has been read. */
  async run({ withinMs, limits }: Required<TimeLimit>): Promise<void> {
    const { consumer, topic, done } = this;
    // it may be rejected before it is awaited
    done.promise.catch(() => {});
    const late = setTimeout(() => done.reject(tooLate()), withinMs);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => this.seek(payload.memberAssignment[topic] ?? []));
    consumer.on(consumer.events.CRASH, ({ payload }) => done.reject(payload.error));
    try {
      await consumer.connect();
      // where it continues if retention deletes records that are being read: with those that still exist
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: true,
        eachBatch: withEmptyBatches((payload) => {
          if (limits === 'batch') late.refresh();
          return this.eachBatch(payload);
        }),
      });
      await done.promise;
    } finally {
      clearTimeout(late);
    }
  }

  private seek(partitions: number[]): void {
    for (const partition of partitions) {
      const range = this.open.get(partition);
      if (range) this.consumer.seek({ topic: this.topic, partition, offset: String(range.from) });
      else this.pause(partition);
    }
  }

  private async eachBatch({ batch, heartbeat }: EachBatchPayload): Promise<void> {
    const { partition } = batch;
    const range = this.open.get(partition);
    if (!range) return this.pause(partition);
    if (hasNoRecords(batch)) return this.skipDeleted(batch, range);
    const records = this.recordsOf(batch, range);
    try {
      const more = records.length === 0 || (await this.take(partition, records));
      range.from = Math.max(range.from, Number(batch.lastOffset()) + 1);
      if (!more || range.from >= range.to) this.end(partition);
      if (this.isComplete) return;
    } catch (error) {
      this.done.reject(error);
      this.pause(partition);
    }
    await this.spare.next();
    await heartbeat();
  }

  /** Retention may have deleted the rest of the range: kafkajs continues behind it, where there may be no records yet. */
  private skipDeleted(batch: Batch, { to }: LogRange): void {
    if (fetchedOf(batch).fetchedOffset >= to) this.end(batch.partition);
  }

  private end(partition: number): void {
    this.open.delete(partition);
    this.pause(partition);
    if (this.isComplete) this.done.resolve();
  }

  /** The records of the range. The clock follows all of them. */
  private recordsOf({ partition, messages }: Batch, { from, to, clock: before = 0 }: LogRange): LogRecord[] {
    let clock = this.clocks.get(partition) ?? before;
    const records: LogRecord[] = [];
    for (const message of messages) {
      clock = clockAfter(clock, Number(message.timestamp));
      const offset = Number(message.offset);
      if (offset >= from && offset < to) records.push(new LogRecord(this.topic, partition, message, clock));
    }
    this.clocks.set(partition, clock);
    return records;
  }

  private pause(partition: number): void {
    this.consumer.pause([{ topic: this.topic, partitions: [partition] }]);
  }
}

/** A pause lasts at least this long. */
const SHORTEST_PAUSE_MS = 5;
/** However busy the process is, what waits continues after this time. */
const LONGEST_PAUSE_MS = 100;

/**
 * The time in which the process has nothing else to do, for work that many others must not wait for. Such work is done in steps of a few milliseconds, each
 * of which waits for its turn: after the step before, until the event loop has rested for as long as it was busy.
 */
export class SpareTime {
  private turn: Promise<void> = Promise.resolve();
  private before: { active: number; idle: number };

  /** utilization: how long the event loop has been active and idle so far, in ms. */
  constructor(private readonly utilization: () => { active: number; idle: number } = () => performance.eventLoopUtilization()) {
    this.before = utilization();
  }

  /** Resolves when the next step may begin. */
  next(): Promise<void> {
    this.turn = this.turn.then(() => this.rest());
    return this.turn;
  }

  private async rest(): Promise<void> {
    const end = performance.now() + LONGEST_PAUSE_MS;
    let now;
    do {
      await new Promise((resolve) => setTimeout(resolve, SHORTEST_PAUSE_MS));
      now = this.utilization();
    } while (now.active - this.before.active > now.idle - this.before.idle && performance.now() < end);
    this.before = now;
  }
}
