import { describe, expect, it } from '@jest/globals';
import { partOf, viewOf } from './stats.dto.js';

const NOW = 1_763_715_723;

describe('statistics', () => {
  it.each([
    ['1h', 60, 60],
    ['24h', 24, 3600],
    ['7d', 28, 21_600],
  ] as const)(
    'statistics of %s have %i buckets of %i seconds without gaps, the last of which holds the present',
    (window, count, width) => {
      const { bucket_s, buckets } = viewOf(partOf(window, NOW), { traffic: [], runs: [] });
      expect([bucket_s, buckets.length]).toEqual([width, count]);
      buckets.forEach(({ start }, index) => {
        expect(start % width).toBe(0);
        if (index > 0) expect(start).toBe(buckets[index - 1]!.start + width);
      });
      const last = buckets.at(-1)!.start;
      expect(last <= NOW && NOW < last + width).toBe(true);
    },
  );

  it('unite what routing and the runtime know, and are zero and null otherwise', () => {
    const part = partOf('1h', NOW);
    const start = part.from_s + 120;
    const traffic = [{ start, events: 3, ended: 0, failed: 0, p50_ms: null, p99_ms: null }];
    const runs = [{ start, events: 0, ended: 2, failed: 1, p50_ms: 5, p99_ms: 9 }];
    const { buckets } = viewOf(part, { traffic, runs });
    expect(buckets[2]).toEqual({
      ...{ start, events: 3, runs: 2, run_errors: 1, deliveries: 0, delivery_failures: 0, p50_ms: 5, p99_ms: 9 },
    });
    expect(buckets[3]).toEqual({
      ...{ start: start + 60, events: 0, runs: 0, run_errors: 0, deliveries: 0, delivery_failures: 0, p50_ms: null, p99_ms: null },
    });
  });
});
