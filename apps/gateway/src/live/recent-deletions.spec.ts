import { describe, expect, it } from '@jest/globals';
import type { DeletedRange, EventPlace } from '#events';
import { RecentDeletions } from './recent-deletions.js';

const at = (ms: number): EventPlace => ({ ms, seq: 0 });
const deletion = (ms: number, range: Partial<DeletedRange> = {}): DeletedRange => ({
  ...{ kind: 'delete', emitterId: 'dc_1', place: at(ms), stream: null, start: null, end: null },
  ...range,
});

describe('the recent deletions of an emitter', () => {
  it.each<[string, Partial<DeletedRange>, string[]]>([
    ['all events', {}, ['1', '2', '3', 'orders 2', '$errors 2']],
    ['a range', { start: at(2), end: at(2) }, ['2', 'orders 2', '$errors 2']],
    ['a stream', { stream: '' }, ['1', '2', '3']],
    ['the end of a stream', { stream: 'orders', start: at(2) }, ['orders 2']],
    ['the custom streams', { stream: '*' }, ['1', '2', '3', 'orders 2']],
  ])('cover %s', (_, range, expected) => {
    const deletions = new RecentDeletions();
    deletions.add(deletion(5, range));
    const events: [string, string, number][] = [
      ...[1, 2, 3].map((ms): [string, string, number] => [`${ms}`, '', ms]),
      ['orders 2', 'orders', 2],
      ['$errors 2', '$errors', 2],
    ];
    const isDeleted = ([, stream, ms]: (typeof events)[0]) => deletions.isDeleted({ stream, place: at(ms) }, at(9));
    expect(events.filter(isDeleted).map(([name]) => name)).toEqual(expected);
  });

  it.each([
    ['between an event and the later one', 1, 9, true],
    ['before the event, even if their range includes it', 6, 9, false],
    ['behind the later event', 1, 4, false],
  ])('count if they are %s', (_, event, later, expected) => {
    const deletions = new RecentDeletions();
    deletions.add(deletion(5, { end: at(100) }));
    expect(deletions.isDeleted({ stream: '', place: at(event) }, at(later))).toBe(expected);
  });

  it('are the last 100; an event before an older one counts as deleted, because it may be', () => {
    const deletions = new RecentDeletions();
    const single = { start: at(3), end: at(3) };
    for (let n = 0; n < 100; n++) deletions.add(deletion(1000 + n, single));
    const isDeleted = (ms: number) => deletions.isDeleted({ stream: '', place: at(ms) }, at(9000));
    expect([3, 4].map(isDeleted)).toEqual([true, false]);
    for (let n = 0; n < 1000; n++) deletions.add(deletion(2000 + n, single));
    expect([4, 2898, 2899, 2900].map(isDeleted)).toEqual([true, true, false, false]);
  });
});
