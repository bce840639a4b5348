import { describe, expect, it } from '@jest/globals';
import { RecentEmits } from './recent-emits.js';

describe('recent emits', () => {
  it('recognise an emit id among the last 100, but not an older one', () => {
    const emits = new RecentEmits();
    expect(emits.add('', 'first')).toBe(true);
    for (let n = 0; n < 99; n++) expect(emits.add('', String(n))).toBe(true);
    expect(emits.add('', 'first')).toBe(false);
    expect(emits.add('', 'one more')).toBe(true);
    expect(emits.add('', 'first')).toBe(true);
  });

  it('are separate for each stream', () => {
    const emits = new RecentEmits();
    expect([emits.add('', 'a'), emits.add('orders', 'a'), emits.add('orders', 'a')]).toEqual([true, true, false]);
  });
});
