import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RunningClock } from './running-clock.js';

describe('the clock of a running process', () => {
  let stoodStillMs = 0;

  beforeEach(() => {
    stoodStillMs = 0;
    jest.useFakeTimers();
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + stoodStillMs);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it.each([
    ['follows the time', [5000], 5000],
    ['counts the delays of a busy process', [200, 'stop 900', 300], 1400],
    ['stops while the process stands still', [200, 'stop 40000', 300], 500],
    ['stops each time', [100, 'stop 5000', 100, 'stop 70000', 100], 300],
    ['does not need a tick to notice that', ['stop 40000'], 100],
  ] as [string, (number | string)[], number][])('%s', (_, steps, expected) => {
    const clock = new RunningClock();
    const start = clock.now();
    for (const step of steps) {
      if (typeof step === 'number') jest.advanceTimersByTime(step);
      else stoodStillMs += Number(step.slice('stop '.length));
    }
    expect(clock.now() - start).toBeCloseTo(expected, -2);
    clock.onApplicationShutdown();
  });
});
