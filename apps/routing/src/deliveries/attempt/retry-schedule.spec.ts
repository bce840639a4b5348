import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_RETRY_AFTER_MS, nextPause, probePause, retryAfterMs, scheduleLength } from './retry-schedule.js';

const SCHEDULE = [5000, 300_000, 1_800_000];
const NOW = Date.UTC(2026, 0, 1, 12);
const MIDDLE = 0.5;

describe('the pause before the next attempt', () => {
  it.each([
    ['after the first', { tries: 1, status: 500 }, 5000],
    ['after the second', { tries: 2, status: null }, 300_000],
    ['after the last but one', { tries: 3, status: 404 }, 1_800_000],
    ['after the last: there is none', { tries: 4, status: 500 }, null],
    ['later than that: neither', { tries: 9, status: 500 }, null],
    ['as a 503 asks, in seconds', { tries: 1, status: 503, retryAfter: '120' }, 126_000],
    ['as a 429 asks, sooner than the schedule', { tries: 2, status: 429, retryAfter: '1' }, 1050],
    ['as a 429 asks, by date', { tries: 1, status: 429, retryAfter: 'Thu, 01 Jan 2026 12:01:00 GMT' }, 63_000],
    ['at once, when the date is over', { tries: 1, status: 429, retryAfter: 'Thu, 01 Jan 2026 11:00:00 GMT' }, 0],
    ['a day at most', { tries: 1, status: 503, retryAfter: '999999999' }, MAX_RETRY_AFTER_MS * 1.05],
    ['by the schedule, when another status asks', { tries: 1, status: 500, retryAfter: '120' }, 5000],
    ['by the schedule, when it is not readable', { tries: 1, status: 503, retryAfter: 'soon' }, 5000],
    ['none after the last, whatever is asked', { tries: 4, status: 503, retryAfter: '1' }, null],
  ])('%s', (_, failed, expected) => {
    expect(nextPause(SCHEDULE, failed, NOW, MIDDLE)).toBe(expected);
  });

  it('varies by a tenth, and is never shorter than requested', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (random) => {
        const scheduled = nextPause(SCHEDULE, { tries: 1, status: 500 }, NOW, random) ?? NaN;
        expect(scheduled).toBeGreaterThanOrEqual(4500);
        expect(scheduled).toBeLessThanOrEqual(5500);
        const asked = nextPause(SCHEDULE, { tries: 1, status: 429, retryAfter: '10' }, NOW, random) ?? NaN;
        expect(asked).toBeGreaterThanOrEqual(10_000);
        expect(asked).toBeLessThanOrEqual(11_000);
      }),
    );
  });

  it('does not exist without a schedule', () => {
    expect(nextPause([], { tries: 1, status: 500 }, NOW, MIDDLE)).toBeNull();
  });
});

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    [' 7 ', 7000],
    ['Thu, 01 Jan 2026 12:00:05 GMT', 5000],
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
    [SCHEDULE, 0, 5000],
    [SCHEDULE, 1, 10_000],
    [SCHEDULE, 3, 40_000],
    [SCHEDULE, 10, 300_000],
    [SCHEDULE, 2000, 300_000],
    [[1000], 0, 1000],
    [[60_000], 0, 5000],
    [[], 0, 5000],
  ])('%j after %i: %i ms', (schedule, failed, expected) => {
    expect(probePause(schedule, failed, MIDDLE)).toBe(expected);
  });
});

it('a schedule is as long as its pauses', () => {
  expect(scheduleLength(SCHEDULE)).toBe(2_105_000);
});
