import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { addSlots, percentile, slotOf } from './stats.js';

const slotsOf = (durations: number[]): number[] => {
  const slots: number[] = [];
  for (const ms of durations) addSlots(slots, [...Array.from({ length: slotOf(ms) }, () => 0), 1]);
  return slots;
};
const durations = fc.array(fc.integer({ min: 1, max: 3_600_000 }), { minLength: 1, maxLength: 50 });

describe('a percentile of durations', () => {
  it('is null if there are none', () => {
    expect(percentile([], 0.5)).toBeNull();
    expect(percentile([0, 0], 0.5)).toBeNull();
  });

  it('differs from the exact one by at most 5 %, or by the rounding to a millisecond', () => {
    fc.assert(
      fc.property(durations, fc.constantFrom(0.5, 0.99), (all, share) => {
        const exact = all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1]!;
        expect(Math.abs(percentile(slotsOf(all), share)! - exact)).toBeLessThanOrEqual(Math.max(1, exact * 0.05));
      }),
    );
  });

  it('is that of all durations when the counts of two replicas are added', () => {
    fc.assert(
      fc.property(durations, durations, (one, other) => {
        const sum = slotsOf(one);
        addSlots(sum, slotsOf(other));
        expect(sum).toEqual(slotsOf([...one, ...other]));
      }),
    );
  });

  it('counts a duration of no time and one of days', () => {
    expect(percentile(slotsOf([0]), 0.99)).toBe(1);
    expect(percentile(slotsOf([1e9]), 0.99)).toBeGreaterThan(3_600_000);
  });
});
