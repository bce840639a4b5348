import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { LimitedWarnings } from './limited-warnings.js';
import type { Log } from './log.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

it('logs a hundred lines of a minute, and then how many others there were', () => {
  const lines: object[] = [];
  const warnings = new LimitedWarnings({ warn: (fields: object) => lines.push(fields) } as unknown as Log, 'event.malformed');
  const warn = (count: number) => {
    for (let n = 1; n <= count; n++) warnings.warn({ n });
  };
  warn(105);
  expect(lines.splice(0)).toEqual(Array.from({ length: 100 }, (_, n) => ({ n: n + 1 })));
  jest.advanceTimersByTime(60_000);
  expect(lines.splice(0)).toEqual([{ left_out: 5 }]);
  jest.advanceTimersByTime(60_000);
  warn(99);
  jest.advanceTimersByTime(59_999);
  warn(2);
  jest.advanceTimersByTime(1);
  expect(lines.splice(0).slice(98)).toEqual([{ n: 99 }, { n: 1 }, { left_out: 1 }]);
  warn(1);
  jest.advanceTimersByTime(60_000);
  expect(lines).toEqual([{ n: 1 }]);
  expect(jest.getTimerCount()).toBe(0);
});

it('logs errors, too, and fields that all lines have', () => {
  const lines: object[] = [];
  const log = { error: (fields: object) => lines.push(fields) } as unknown as Log;
  const errors = new LimitedWarnings(log, 'lane.task-failed', { group: 'g' }, 'error');
  for (let n = 1; n <= 101; n++) errors.warn({ n });
  jest.advanceTimersByTime(60_000);
  expect(lines).toHaveLength(101);
  expect([lines[0], lines[100]]).toEqual([
    { group: 'g', n: 1 },
    { group: 'g', left_out: 1 },
  ]);
});
