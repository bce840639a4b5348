import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Continuation, LogContinuity } from './log-continuity.js';

/** A log: the timestamp of each record, and the offset of the first one that retention has left. */
interface Log {
  timestamps: number[];
  start: number;
  /** The offsets of hidden records. */
  hidden?: ReadonlySet<number>;
  /** The most records of a fetch. */
  most?: number;
}

/** A fetch as kafkajs executes it: for an offset outside the log, it begins at the beginning. */
function fetch({ timestamps, start, hidden, most = 5 }: Log, from: number) {
  const fetchedOffset = from < start || from > timestamps.length ? start : from;
  const records = timestamps
    .map((timestamp, offset) => ({ offset: String(offset), timestamp: String(timestamp) }))
    .slice(fetchedOffset, fetchedOffset + most);
  const messages = records.filter(({ offset }) => !hidden?.has(Number(offset)));
  return { messages, records, fetchedOffset, highWatermark: timestamps.length, logStart: start };
}

/**
 * Reads on for as long as there is something to read. Returns the timestamps of what it has read.
 *
 * @param lost how often another offset is requested in vain, because the consumer joins its group again
 */
function readOn(continuity: LogContinuity, log: Log, first?: number, lost = 0) {
  const read: number[] = [];
  let left = lost;
  let [current, from, replaced, missed] = [continuity, first ?? continuity.from, 0, 0];
  for (let fetches = 0; fetches < 200; fetches++) {
    const fetched = fetch(log, from);
    const isEmpty = fetched.records.length === 0;
    const endsEarly = fetched.highWatermark < current.next;
    // it waits for records where it is, or where the log is verified
    if (isEmpty && !endsEarly && from === current.from) break;
    const continuation: Continuation = isEmpty
      ? endsEarly
        ? { kind: 'replaced' }
        : { kind: 'refetch', from: current.from }
      : current.check(fetched);
    if (continuation.kind === 'refetch') from = left-- > 0 ? from : continuation.from;
    else if (continuation.kind === 'replaced') {
      current = new LogContinuity({ offset: 0, clock: 0 });
      replaced += 1;
      from = 0;
    } else {
      missed += continuation.missed;
      for (const { offset, timestamp } of fetched.messages) {
        if (Number(offset) < current.next) continue;
        read.push(Number(timestamp));
        current.advance(Number(offset), Number(timestamp));
      }
      current.skipHidden(fetched);
      // kafkajs continues behind all records of the fetch
      from = fetched.fetchedOffset + fetched.records.length;
    }
  }
  return { read, replaced, missed };
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
const position = (timestamps: number[], offset: number) => ({ offset, clock: 0, timestamp: timestamps[offset - 1] });

describe('the continuity of a log', () => {
  it('is found in the log that was read, wherever the first fetch begins, and no record is read twice or left out', () => {
    fc.assert(
      fc.property(fc.nat(30), fc.nat(30), fc.option(fc.nat(40), { nil: undefined }), (length, offset, first) => {
        fc.pre(offset <= length);
        const log = { timestamps: range(1000, 1000 + length), start: 0 };
        expect(readOn(new LogContinuity(position(log.timestamps, offset)), log, first)).toEqual({
          read: range(1000 + offset, 1000 + length),
          replaced: 0,
          missed: 0,
        });
      }),
    );
  });

  it('counts the records that retention has deleted', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.nat(30), fc.nat(30), (offset, start, more) => {
        const end = Math.max(offset, start) + more + 1;
        const log = { timestamps: range(1000, 1000 + end), start };
        expect(readOn(new LogContinuity(position(log.timestamps, offset)), log)).toEqual({
          read: range(1000 + Math.max(offset, start), 1000 + end),
          replaced: 0,
          missed: Math.max(0, start - offset),
        });
      }),
    );
  });

  it('ends with another log, shorter or longer than what was read, which is then read as a whole', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.nat(60), fc.option(fc.nat(40), { nil: undefined }), (offset, length, first) => {
        const log = { timestamps: range(2000, 2000 + length), start: 0 };
        const found = readOn(new LogContinuity(position(range(1000, 1100), offset)), log, first);
        expect(found).toEqual({ read: range(2000, 2000 + length), replaced: 1, missed: 0 });
      }),
    );
  });

  it('is verified however often fetches are repeated from where they cannot be verified', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 30 }),
        fc.boolean(),
        fc.nat(5),
        (offset, more, isAnother, lost) => {
          const continuity = new LogContinuity(position(range(1000, 1100), offset));
          const log = { timestamps: isAnother ? range(2000, 2000 + offset + more) : range(1000, 1000 + offset + more), start: 0 };
          expect(readOn(continuity, log, offset, lost)).toEqual({
            read: isAnother ? log.timestamps : log.timestamps.slice(offset),
            replaced: isAnother ? 1 : 0,
            missed: 0,
          });
        },
      ),
    );
  });

  it('ends with another log that appears while a reader follows the first one, if it is in doubt', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 60 }), (before, after) => {
        const continuity = new LogContinuity({ offset: 0, clock: 0 });
        expect(readOn(continuity, { timestamps: range(1000, 1000 + before), start: 0 }).replaced).toBe(0);
        continuity.reverify();
        const found = readOn(continuity, { timestamps: range(2000, 2000 + after), start: 0 });
        expect(found).toEqual({ read: range(2000, 2000 + after), replaced: 1, missed: 0 });
      }),
    );
  });

  it('is not questioned for a position of an earlier version, which does not identify its log', () => {
    const log = { timestamps: range(1000, 1010), start: 0 };
    expect(readOn(new LogContinuity({ offset: 4, clock: 1003 }), log)).toEqual({ read: range(1004, 1010), replaced: 0, missed: 0 });
  });

  it('is not broken when compaction has removed the record just below the position', () => {
    const continuity = new LogContinuity({ offset: 4, clock: 1003, timestamp: 1003 });
    const fetched = { records: [{ offset: '4', timestamp: '1004' }], fetchedOffset: 3, highWatermark: 5, logStart: 0 };
    expect(continuity.check(fetched)).toEqual({ kind: 'continues', missed: 0 });
  });

  it('includes hidden records, however many there are and however few fit into a fetch', () => {
    const hiddenOffsets = fc.uniqueArray(fc.nat(39), { maxLength: 40 }).map((offsets) => new Set(offsets));
    fc.assert(
      fc.property(hiddenOffsets, fc.integer({ min: 1, max: 5 }), fc.nat(40), fc.nat(40), fc.boolean(), (hidden, most, at, first, doubt) => {
        // a reader stores the position behind a record that it got
        const offset = [at, 0].find((each) => each === 0 || !hidden.has(each - 1)) ?? 0;
        const log = { timestamps: range(1000, 1040), start: 0, hidden, most };
        const visible = range(offset, 40).filter((each) => !hidden.has(each));
        const continuity = new LogContinuity(position(log.timestamps, offset));
        const expected = { read: visible.map((each) => 1000 + each), replaced: 0, missed: 0 };
        expect(readOn(continuity, log, first)).toEqual(expected);
        // it has followed the log to its end, and is found again there
        if (doubt) continuity.reverify();
        const more = { ...log, timestamps: range(1000, 1045), hidden: new Set([...hidden, 40, 42]) };
        expect(readOn(continuity, more)).toEqual({ read: [1041, 1043, 1044], replaced: 0, missed: 0 });
        continuity.reverify();
        const another = { timestamps: range(2000, 2050), start: 0, hidden, most };
        const found = readOn(continuity, another);
        expect(found).toEqual({ read: range(0, 50).flatMap((each) => (hidden.has(each) ? [] : [2000 + each])), replaced: 1, missed: 0 });
      }),
    );
  });

  it('is not broken when compaction has removed that record, which was the last one of its batch', () => {
    const continuity = new LogContinuity({ offset: 4, clock: 1003, timestamp: 1003 });
    const fetched = { records: [{ offset: '3', timestamp: '-1' }], fetchedOffset: 3, highWatermark: 5, logStart: 0 };
    expect(continuity.check(fetched)).toEqual({ kind: 'continues', missed: 0 });
    expect(continuity.from).toBe(4);
  });

  it('includes records that compaction has removed behind those of the same batch', () => {
    const continuity = new LogContinuity({ offset: 4, clock: 1003 });
    const fetched = { records: [], fetchedOffset: 4, highWatermark: 9, logStart: 0 };
    expect(continuity.check(fetched)).toEqual({ kind: 'continues', missed: 0 });
    continuity.skipHidden(fetched);
    expect(continuity.check({ ...fetched, fetchedOffset: 5 })).toEqual({ kind: 'continues', missed: 0 });
  });

  it('has a gap where retention has deleted records, which is found once, even if the records behind it are fetched again', () => {
    const continuity = new LogContinuity({ offset: 4, clock: 1003, timestamp: 1003 });
    const fetched = { records: [{ offset: '9', timestamp: '1009' }], fetchedOffset: 9, highWatermark: 10, logStart: 9 };
    expect(continuity.check(fetched)).toEqual({ kind: 'continues', missed: 5, unverified: true });
    continuity.reverify();
    expect(continuity.check(fetched)).toEqual({ kind: 'continues', missed: 0 });
    expect(continuity.check({ ...fetched, fetchedOffset: 12, logStart: 12 })).toMatchObject({ missed: 3 });
  });

  it('has a gap behind the records that a new reader has read from the beginning, but none in front of them', () => {
    const continuity = new LogContinuity({ offset: 0, clock: 0 });
    const fetched = { records: [{ offset: '9', timestamp: '1009' }], fetchedOffset: 9, highWatermark: 10, logStart: 9 };
    expect(continuity.check(fetched)).toMatchObject({ kind: 'continues', missed: 0 });
    continuity.advance(9, 1009);
    expect(continuity.check({ ...fetched, fetchedOffset: 15, logStart: 15 })).toMatchObject({ kind: 'continues', missed: 5 });
  });
});
