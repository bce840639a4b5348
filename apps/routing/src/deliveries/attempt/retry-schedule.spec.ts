import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RoutingConfig } from '../../routing.config.js';
import { MAX_RETRY_AFTER_MS, nextAttempt, probePause, retryAfterMs, scheduleLength } from './retry-schedule.js';

const SCHEDULE = [5000, 300_000, 1_800_000];
const NOW = Date.UTC(2026, 0, 1, 12);
const MIDDLE = 0.5;

describe('the next attempt', () => {
  it.each([
    ['after the first', 1, null, 5000],
    ['after the second', 2, null, 300_000],
    ['after the last but one', 3, null, 1_800_000],
    ['after the last: there is none', 4, null, null],
    ['later than that: neither', 9, null, null],
    ['as the receiver asks', 1, 120_000, 126_000],
    ['by the schedule, when the receiver asks for less', 2, 1000, 300_000],
    ['none after the last, whatever is asked', 4, 1000, null],
  ])('%s', (_, tries, retryAfterMs, pauseMs) => {
    expect(nextAttempt(SCHEDULE, { tries, sinceFirstMs: 0, retryAfterMs }, MIDDLE)).toEqual({ tries, pauseMs });
  });

  it.each([
    ['as it asks, sooner than the schedule, which is not used up', 2, 10_000, 2000, { tries: 1, pauseMs: 2100 }],
    ['after a second, when it asks for less; the first attempt counts', 1, 0, 0, { tries: 1, pauseMs: 1050 }],
    ['after a tenth of the time since the first attempt, when it asks for less', 2, 100_000, 2000, { tries: 1, pauseMs: 10_500 }],
    ['by the schedule, when that is sooner', 1, 100_000, 0, { tries: 1, pauseMs: 5000 }],
    ['as it asks, later than the schedule', 1, 0, 120_000, { tries: 1, pauseMs: 126_000 }],
    ['one try further, when the pause of the schedule has passed', 2, 305_000, 2000, { tries: 2, pauseMs: 32_025 }],
    ['by the schedule, when it does not ask', 1, 0, null, { tries: 1, pauseMs: 5000 }],
    ['none after the last, whatever is asked', 4, 3_000_000, 1000, { tries: 4, pauseMs: null }],
  ])('a busy receiver decides when it is attempted again: %s', (_, tries, sinceFirstMs, retryAfterMs, expected) => {
    expect(nextAttempt(SCHEDULE, { tries, sinceFirstMs, retryAfterMs, busy: true }, MIDDLE)).toEqual(expected);
  });

  it.each([0, 1, 5, 60, 600, 7200])('comes until the whole schedule has passed if the receiver is always busy for %i s', (seconds) => {
    const { retrySchedule } = RoutingConfig.read({});
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (random) => {
        let [tries, sinceFirstMs, attempts] = [0, 0, 0];
        for (let pauseMs: number | null = 0; pauseMs !== null; sinceFirstMs += pauseMs ?? 0) {
          attempts += 1;
          const failed = { tries: tries + 1, sinceFirstMs, retryAfterMs: seconds * 1000, busy: true };
          ({ tries, pauseMs } = nextAttempt(retrySchedule, failed, random.next().value as number));
        }
        expect(sinceFirstMs).toBeGreaterThan(0.9 * scheduleLength(retrySchedule));
        // before the sweeper gives it up
        expect(sinceFirstMs).toBeLessThan(1.25 * scheduleLength(retrySchedule));
        expect(attempts).toBeLessThan(140);
      }),
    );
  });

  it('varies by a tenth, and is never sooner than requested', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (random) => {
        const pauseAfter = (retryAfterMs: number | null) =>
          nextAttempt(SCHEDULE, { tries: 1, sinceFirstMs: 0, retryAfterMs }, random).pauseMs ?? NaN;
        expect(pauseAfter(null)).toBeGreaterThanOrEqual(4500);
        expect(pauseAfter(null)).toBeLessThanOrEqual(5500);
        expect(pauseAfter(10_000)).toBeGreaterThanOrEqual(10_000);
        expect(pauseAfter(10_000)).toBeLessThanOrEqual(11_000);
      }),
    );
  });

  it('does not exist without a schedule', () => {
    expect(nextAttempt([], { tries: 1, sinceFirstMs: 0, retryAfterMs: null }, MIDDLE)).toEqual({ tries: 1, pauseMs: null });
  });
});

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    [' 7 ', 7000],
    ['Thu, 01 Jan 2026 12:00:05 GMT', 5000],
    ['Thu, 01 Jan 2026 11:00:00 GMT', 0],
    ['Thu Jan  1 12:00:05 2026', 5000],
    ['Thursday, 01-Jan-26 12:00:05 GMT', 5000],
    ['Thu, 01 Jan 2026 12:00:05', 5000],
    ['Thu, 01 Jan 2026 13:00:05 +0100', 5000],
    ['999999999', MAX_RETRY_AFTER_MS],
    ['soon', null],
    ['-1', null],
    ['1.5', null],
    ['2026-01-01T12:00:05Z', null],
    ['', null],
    [undefined, null],
  ])('%j', (header, expected) => {
    expect(retryAfterMs(header, NOW)).toBe(expected);
  });
});

describe('the pause before the next probe', () => {
  it.each([
    [SCHEDULE, 0, null, 5000],
    [SCHEDULE, 1, null, 10_000],
    [SCHEDULE, 3, null, 40_000],
    [SCHEDULE, 10, null, 300_000],
    [SCHEDULE, 2000, null, 300_000],
    [[1000], 0, null, 1000],
    [[1000, 2000], 9, null, 2000],
    [[60_000], 0, null, 5000],
    [[], 0, null, 5000],
    [[0, 300_000], 0, null, 1000],
    [[0, 300_000], 3, null, 8000],
    [[1, 300_000], 12, null, 300_000],
    [[0], 5, null, 1000],
    [SCHEDULE, 0, 60_000, 60_000],
    [SCHEDULE, 10, 1000, 300_000],
    [SCHEDULE, 0, 86_400_000, 3_600_000],
  ])('%j after %i, and %j that the receiver requests: %i ms', (schedule, failedProbes, retryAfterMs, expected) => {
    expect(probePause(schedule, { failedProbes, retryAfterMs }, MIDDLE)).toBe(expected);
  });
});

it('a schedule is as long as its pauses', () => {
  expect(scheduleLength(SCHEDULE)).toBe(2_105_000);
});
