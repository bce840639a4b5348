import { expect, it } from '@jest/globals';
import { Batch, LogRecord } from '#messaging';
import { partsOf } from './batch-parts.js';

const record = (offset: number, emitter: string, type: string) =>
  new LogRecord(
    'events',
    0,
    {
      offset: `${offset}`,
      timestamp: `${1000 + offset}`,
      key: Buffer.from(emitter),
      value: Buffer.from('{}'),
      attributes: 0,
      // the key determines the emitter
      headers: { ce_source: Buffer.from('dc_other'), ce_type: Buffer.from(type) },
    },
    2000 + offset,
  );
const [before, after] = [
  { offset: 0, clock: 5 },
  { offset: 999, clock: 9 },
];
const parts = (records: LogRecord[]) =>
  [...partsOf(new Batch(0, records, before, after))].map((part) => [part.records.map(({ offset }) => offset), part.before, part.after]);

it('splits a batch behind each hundredth emitter of which events are deleted', () => {
  const records = Array.from({ length: 300 }, (_, n) => record(n, n < 10 ? 'dc_x' : `dc_${n >> 1}`, n % 2 ? '$delete' : 'default'));
  const first = { offset: 208, clock: 2207, timestamp: 1207 };
  expect(parts(records)).toEqual([
    [Array.from({ length: 208 }, (_, n) => n), before, first],
    [Array.from({ length: 92 }, (_, n) => 208 + n), first, after],
  ]);
});

it.each([
  ['no records', 0, 'default'],
  ['events only', 300, 'default'],
  ['deletions of a hundred emitters', 100, '$delete'],
])('does not split a batch with %s', (_, count, type) => {
  const records = Array.from({ length: count }, (_, n) => record(n, `dc_${n}`, type));
  expect(parts(records)).toEqual([[records.map(({ offset }) => offset), before, after]]);
});
