import type { Batch, KafkaMessage } from 'kafkajs';
import { counter, type Log } from '#observability';
import { logStartOf, NO_TIMESTAMP } from './fetch-response.js';
import type { Position } from './watermark.js';

/** A fetch of a partition. `fetchedOffset`: the offset that was requested. */
export interface Fetched {
  /** All records from there on, also hidden ones, which kafkajs does not pass on: markers of transactions, records of aborted ones, and ends of batches. */
  records: readonly Pick<KafkaMessage, 'offset' | 'timestamp'>[];
  fetchedOffset: number;
  /** The offset of the next record that the partition will get. */
  highWatermark: number;
  /** The offset of the first record that retention has left. */
  logStart: number;
}

/** Fields of a batch that kafkajs' types omit. */
interface WholeBatch extends Batch {
  fetchedOffset: string;
  rawMessages: KafkaMessage[];
  /** Without those below `fetchedOffset`: a producer's batch is fetched whole. */
  messagesWithinOffset: KafkaMessage[];
}

/** Whether a fetch found no records, not even hidden ones. */
export const hasNoRecords = (batch: Batch): boolean => (batch as WholeBatch).rawMessages.length === 0;

export function fetchedOf(batch: Batch): Fetched & { messages: KafkaMessage[] } {
  const { fetchedOffset, rawMessages, messagesWithinOffset } = batch as WholeBatch;
  return {
    messages: batch.messages,
    records: messagesWithinOffset,
    fetchedOffset: Number(fetchedOffset),
    highWatermark: Number(batch.highWatermark),
    logStart: logStartOf(rawMessages),
  };
}

/** The meaning of a fetch for a reader. */
export type Continuation =
  /**
   * Take its records from `next` on. `missed`: retention deleted this many records before they were read. `unverified`: it has also deleted the record
   * that identifies the log.
   */
  | { kind: 'continues'; missed: number; unverified?: true }
  /** These are not the next records: fetch again from this offset. */
  | { kind: 'refetch'; from: number }
  /** The partition has other records than those that were read: it must be read from its beginning. */
  | { kind: 'replaced' };

/**
 * Verifies that the fetches of a partition continue the log that its reader has read. A position is an offset, and offsets start again from 0 when a
 * topic is recreated, a broker loses its disk or a volume is restored. The timestamp of the record just below the position identifies the log, because
 * another log has another record there:
 *
 *   unverified ── a fetch from next - 1 ──► same timestamp ──► verified ── fetches from next, next, … ──► verified
 *       ▲                                 └► another one ───► replaced
 *       └── an assignment, a new connection, a silence of the broker, or a fetch from elsewhere
 *
 * Only if retention has deleted that record, a log is read on although nothing verifies it.
 */
export class LogContinuity {
  /** The offset of the next record. */
  next: number;
  private timestamp: number | undefined;
  private verified: boolean;
  /** Nothing has been read before: whatever the log begins with is its beginning. */
  private isFresh: boolean;
  /** The offset of a fetch that found an end below the next record, and is repeated once: a new leader of a partition may not know the end yet. */
  private repeated: number | undefined;

  constructor({ offset, timestamp }: Position) {
    this.next = offset;
    this.timestamp = timestamp;
    this.verified = timestamp === undefined;
    this.isFresh = offset === 0;
  }

  /** The offset from which to fetch. */
  get from(): number {
    return this.verified ? this.next : this.next - 1;
  }

  /** The log may have been replaced: the next fetch is verified. */
  reverify(): void {
    this.verified = this.timestamp === undefined;
  }

  /** The position behind everything that has been read; undefined if nothing there identifies the log. */
  get identified(): { offset: number; timestamp: number } | undefined {
    return this.timestamp === undefined ? undefined : { offset: this.next, timestamp: this.timestamp };
  }

  /** The record has been taken. */
  advance(offset: number, timestamp: number): void {
    this.isFresh = false;
    this.next = offset + 1;
    this.timestamp = timestamp;
  }

  /**
   * All visible records of a fetch that continues the log have been taken: continues behind the hidden ones. Without this, a reader would fetch them repeatedly
   * if a response has no capacity for them and the next visible record.
   */
  skipHidden({ records, fetchedOffset }: Pick<Fetched, 'records' | 'fetchedOffset'>): void {
    const last = records.at(-1);
    // no record: the batch ends below, and kafkajs continues behind the offset that it requested
    const offset = last ? Number(last.offset) : fetchedOffset;
    if (offset < this.next) return;
    this.isFresh = false;
    this.next = offset + 1;
    const timestamp = Number(last?.timestamp ?? NO_TIMESTAMP);
    // without one, nothing identifies the log until the next record
    this.timestamp = timestamp === NO_TIMESTAMP ? undefined : timestamp;
  }

  /** Whether the log ends, at `end`, below the next record. `next`: that record when the end was requested; the position may be another one by now. */
  endsEarly(end: number, next: number): boolean {
    return end < Math.min(next, this.next);
  }

  check({ records, fetchedOffset, highWatermark, logStart }: Fetched): Continuation {
    const { next } = this;
    if (fetchedOffset > next || (fetchedOffset === next && !this.verified)) {
      // requested before the position was known, or from where the group or kafkajs had another one
      if (logStart < next || fetchedOffset > logStart) return { kind: 'refetch', from: Math.max(this.from, logStart) };
      const missed = this.isFresh ? 0 : fetchedOffset - next;
      // if none of the records can be taken now, the same gap is not found again
      if (missed > 0) {
        this.next = fetchedOffset;
        this.timestamp = undefined;
      }
      return { ...this.continues(missed), unverified: true };
    }
    if (fetchedOffset === next) return this.continues(0);
    this.reverify();
    // not from where the log would be verified: nothing may be there yet
    if (highWatermark < next) return this.isRepeated(fetchedOffset) ? { kind: 'replaced' } : { kind: 'refetch', from: fetchedOffset };
    if (this.timestamp === undefined) return this.continues(0);
    const before = records.find(({ offset }) => Number(offset) === next - 1);
    if (before) {
      const timestamp = Number(before.timestamp);
      // compaction has removed the record, which was the last one of its batch: nothing else identifies the log
      return timestamp === this.timestamp || timestamp === NO_TIMESTAMP ? this.continues(0) : { kind: 'replaced' };
    }
    // it ends below the record that identifies the log, or compaction has removed that record
    return records.some(({ offset }) => Number(offset) >= next) ? this.continues(0) : { kind: 'refetch', from: this.from };
  }

  private continues(missed: number): Continuation & { kind: 'continues' } {
    this.verified = true;
    this.repeated = undefined;
    return { kind: 'continues', missed };
  }

  private isRepeated(fetchedOffset: number): boolean {
    const isRepeated = this.repeated === fetchedOffset;
    this.repeated = isRepeated ? undefined : fetchedOffset;
    return isRepeated;
  }
}

const replaced = counter(
  'log_replaced_total',
  'Partitions whose log was replaced by another one, so that they were read from the beginning.',
  ['topic'],
);
const missed = counter('log_records_missed_total', 'Records that retention deleted before a consumer had read them.', ['topic', 'group']);

/** Records that retention deleted before they were read: the offsets from `from`, inclusive, to `to`, exclusive. */
export interface MissedRecords {
  partition: number;
  from: number;
  to: number;
  /** The clock of the last record that was read before, in ms. */
  since: number;
}

/** Where a reader is in its partition. */
interface At {
  topic: string;
  partition: number;
  group?: string;
  /** The offset that the reader wanted, if it is known, and the one from which Kafka returned records. */
  expected?: number;
  fetched: number;
}

/** A topic that was recreated, a broker that lost its disk, or a restored volume: the records since the last position are gone. */
export function reportReplaced(log: Log, fields: At & { end: number }): void {
  replaced.inc({ topic: fields.topic });
  log.error(fields, 'log.replaced');
}

/** Retention deleted the records before they were read. */
export function reportMissed(log: Log, fields: At & { missed: number }): void {
  missed.inc({ topic: fields.topic, group: fields.group ?? '' }, fields.missed);
  log.error(fields, 'log.records-missed');
}
