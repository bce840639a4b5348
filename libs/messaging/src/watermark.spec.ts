import { expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { AHEAD_MS, clockAfter, type Progress, union, Watermark } from './watermark.js';

const knows = ({ offset: low, ended }: Progress, offset: number): boolean =>
  offset < low || ended.some(({ from, to }) => offset >= from && offset < to);

const LAST = 40;
const offsets = Array.from({ length: LAST }, (_, offset) => offset);
/** A partition of records with gaps between them: all have begun, some are done. */
const progress = fc.record({ records: fc.subarray(offsets), ended: fc.subarray(offsets) }).map(({ records, ended }) => {
  const watermark = new Watermark({ offset: 0, clock: 100 });
  const ends = new Map(records.map((offset) => [offset, watermark.begin(offset, 1000 + offset)]));
  for (const offset of ended) ends.get(offset)?.();
  const open = records.filter((offset) => !ended.includes(offset));
  return { progress: watermark.progress(), records, open, undone: watermark.undone, next: watermark.next };
});

it('tracks for each record whether it is done, and the clock below the first unfinished one', () => {
  fc.assert(
    fc.property(progress, ({ progress: found, records, open, undone, next }) => {
      expect(undone).toEqual([...open, next]);
      // without a record below the position, the ones above it are not identified
      for (const offset of records) expect(knows(found, offset)).toBe(found.timestamp !== undefined && !open.includes(offset));
      expect(knows(found, next)).toBe(false);
      // below it is the record that identifies the log
      expect(found.offset).toBe((records.findLast((offset) => offset < (open[0] ?? Infinity)) ?? -1) + 1);
      expect(found.timestamp).toBe(found.offset === 0 ? undefined : 999 + found.offset);
      for (const { from, to } of found.ended) expect(from).toBeLessThan(to);
    }),
  );
});

it('a watermark has the clock and the timestamp of the record below the position', () => {
  const watermark = new Watermark({ offset: 5, clock: 100 });
  expect(watermark.progress()).toEqual({ offset: 5, clock: 100, ended: [] });
  const [endFirst, endSecond] = [watermark.begin(5, 300), watermark.begin(7, 200)];
  expect(watermark.progress()).toEqual({ offset: 5, clock: 100, ended: [] });
  endFirst();
  // 6 is a gap
  expect(watermark.progress()).toEqual({ offset: 6, clock: 300, timestamp: 300, ended: [] });
  endSecond();
  expect(watermark.progress()).toEqual({ offset: 8, clock: 300, timestamp: 200, ended: [] });
});

it('a watermark has the time at which the first record that is not done has begun', () => {
  const now = jest.spyOn(performance, 'now');
  const watermark = new Watermark({ offset: 0, clock: 0 });
  expect(watermark.undoneSince).toBeUndefined();
  const [endFirst, , endThird] = [0, 1, 2].map((offset) => {
    now.mockReturnValue(10 * offset);
    return watermark.begin(offset, 100);
  });
  endThird!();
  expect(watermark.undoneSince).toBe(0);
  endFirst!();
  expect(watermark.undoneSince).toBe(10);
  now.mockRestore();
});

it('a watermark is behind hidden records when those before them are done', () => {
  const watermark = new Watermark({ offset: 5, clock: 100 });
  const end = watermark.begin(5, 300);
  watermark.skip({ offset: 8, timestamp: 250 });
  expect(watermark.progress()).toEqual({ offset: 5, clock: 100, ended: [] });
  const { finished } = watermark;
  end();
  expect(watermark.progress()).toEqual({ offset: 8, clock: 300, timestamp: 250, ended: [] });
  expect(watermark.finished).toBe(finished + 1);
  watermark.skip({ offset: 8, timestamp: 250 });
  expect(watermark.finished).toBe(finished + 1);
  watermark.skip({ offset: 9, timestamp: 260 });
  expect(watermark.finished).toBe(finished + 2);
  expect(watermark.progress()).toEqual({ offset: 9, clock: 300, timestamp: 260, ended: [] });
});

const NOW = 1_700_000_000_000;

it.each([
  ['follows the timestamps', NOW, NOW + 1, NOW + 1],
  ['does not step back with them', NOW, NOW - 1000, NOW],
  ['does not step back to a machine that has lost its clock', NOW, 0, NOW],
  ['stays where it is while it is less than five minutes ahead', NOW + AHEAD_MS, NOW, NOW + AHEAD_MS],
  ['forgets a record from the future', Date.UTC(2100), NOW, NOW],
  ['stays where it is while the timestamps are an hour behind', NOW, NOW - 3_600_000, NOW],
])('the clock %s', (_, clock, timestamp, expected) => expect(clockAfter(clock, timestamp, NOW)).toBe(expected));

it('merges the progress of two sources', () => {
  fc.assert(
    fc.property(progress, progress, ({ progress: one }, { progress: other }) => {
      const both = union(one, other);
      for (const offset of offsets) expect(knows(both, offset)).toBe(knows(one, offset) || knows(other, offset));
      expect(both.offset).toBe(Math.max(one.offset, other.offset));
    }),
  );
});
