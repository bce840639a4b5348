import { beforeEach, describe, expect, it } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { EventPlace } from '#events';
import { RecentDeletions } from './recent-deletions.js';
import { Emit, RecentEmits } from './recent-emits.js';

const at = (ms: number): EventPlace => ({ ms, seq: 0 });

describe('recent emits', () => {
  let emits: RecentEmits;
  let limit: number;
  const add = (stream: string, emitId: string, ms = 0) => emits.add(new Emit(stream, emitId, at(ms)));
  beforeEach(() => {
    limit = 1000;
    emits = new RecentEmits(() => limit);
  });

  it('recognise an emit id among the last 100, but not an older one', () => {
    expect(add('', 'first')).toBe(true);
    for (let n = 0; n < 99; n++) expect(add('', String(n))).toBe(true);
    expect(add('', 'first')).toBe(false);
    expect(add('', 'one more')).toBe(true);
    expect(add('', 'first')).toBe(true);
  });

  it('emits with the same id on two streams are different', () => {
    expect([add('', 'a'), add('orders', 'a'), add('orders', 'a')]).toEqual([true, true, false]);
    expect([add('orders a', 'b'), add('orders', 'a b')]).toEqual([true, true]);
  });

  it('are those of each stream, however many other streams have', () => {
    add('quiet', 'first');
    for (let n = 0; n < 200; n++) add('busy', String(n));
    expect(add('quiet', 'first')).toBe(false);
  });

  it('are forgotten of the streams that have emitted least recently, if there are too many', () => {
    for (let n = 0; n < 500; n++) add(`stream ${n}`, 'same');
    const isNew = (n: number) => add(`stream ${n}`, 'same');
    expect([isNew(499), isNew(400), isNew(0)]).toEqual([false, false, true]);
  });

  it('are not forgotten of the stream that has just emitted, however early it began', () => {
    add('first', 'begin');
    for (let n = 0; n < 166; n++) add(`stream ${n}`, 'same');
    expect([add('first', 'new'), add('first', 'new')]).toEqual([true, false]);
  });

  it('are those of nine streams, and the last of a tenth, if each has more than a hundred', () => {
    for (let n = 0; n < 20; n++) for (let emit = 0; emit < 200; emit++) add(`stream ${n}`, String(emit));
    const known = Array.from({ length: 20 }, (_, n) => 19 - n).filter((n) => !add(`stream ${n}`, '199'));
    expect(known).toEqual([19, 18, 17, 16, 15, 14, 13, 12, 11, 10]);
  });

  it('are fewer when the limit becomes lower', () => {
    for (let n = 0; n < 100; n++) add('', String(n));
    limit = 15;
    add('', '100');
    expect([100, 91, 90].map((n) => add('', String(n)))).toEqual([false, false, true]);
  });

  it('are new again if their events were deleted before, and known from then on', () => {
    const deletions = new RecentDeletions();
    deletions.add({ kind: 'delete', emitterId: 'dc_1', place: at(2), start: null, end: null, stream: null });
    const isNew = (ms: number) => emits.add(new Emit('', 'a', at(ms)), deletions);
    expect([1, 3, 4].map(isNew)).toEqual([true, true, false]);
  });

  it('need little memory, however long their ids are', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const heap = () => {
      gc();
      return process.memoryUsage().heapUsed;
    };
    const before = heap();
    const all = Array.from({ length: 50 }, () => new RecentEmits(() => 1000));
    for (const each of all)
      for (let n = 0; n < 1000; n++) each.add(new Emit('€'.repeat(240) + (n % 9), '€'.repeat(240) + n, at(1_700_000_000_000 + n)));
    expect((heap() - before) / all.length).toBeLessThan(40_000);
    expect(all).toHaveLength(50);
  });
});
