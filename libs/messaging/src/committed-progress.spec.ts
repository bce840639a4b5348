import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { committedProgress, type Progress, progressMetadata } from './watermark.js';

/** Lengths of runs of unfinished and finished records, alternating. */
const runs = (maxLength: number) =>
  fc.array(fc.tuple(fc.integer({ min: 1, max: 70_000 }), fc.integer({ min: 1, max: 300 })), { maxLength });

function progress(offset: number, clock: number, lengths: [number, number][]): Progress {
  let at = offset;
  return { offset, clock, ended: lengths.map(([open, done]) => ({ from: at + open, to: (at += open + done) })) };
}

it('committed progress is read back unchanged', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(2 ** 42), runs(300), (offset, clock, lengths) => {
      const given = progress(offset, clock, lengths);
      expect(committedProgress(offset, progressMetadata(given))).toEqual(given);
    }),
  );
});

it('committed progress fits into the metadata limit of Kafka and omits the highest records first', () => {
  const given = progress(
    5,
    1_700_000_000_000,
    Array.from({ length: 5000 }, () => [1, 1]),
  );
  const metadata = progressMetadata(given);
  expect(metadata.length).toBeLessThanOrEqual(4096);
  const { ended } = committedProgress(5, metadata);
  expect(ended.length).toBeGreaterThan(1000);
  expect(ended).toEqual(given.ended.slice(0, ended.length));
});

it.each([
  [-1, null, { offset: 0, clock: 0, ended: [] }],
  [7, '', { offset: 7, clock: 0, ended: [] }],
  [7, '123', { offset: 7, clock: 123, ended: [] }],
  [7, '123 ', { offset: 7, clock: 123, ended: [] }],
  [7, '123 7 AQI', { offset: 7, clock: 123, ended: [{ from: 8, to: 10 }] }],
  // an unpaired value
  [7, '123 7 AQIB', { offset: 7, clock: 123, ended: [{ from: 8, to: 10 }] }],
  // written for another offset
  [9, '123 7 AQI', { offset: 9, clock: 123, ended: [] }],
  [7, 'x y', { offset: 7, clock: 0, ended: [] }],
] as const)('progress read for offset %j with the metadata %j is %j', (offset, metadata, expected) =>
  expect(committedProgress(offset, metadata)).toEqual(expected),
);
