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
    // an attempt is in progress
    clock.onTick(() => true);
    const start = clock.now();
    for (const step of steps) {
      if (typeof step === 'number') jest.advanceTimersByTime(step);
      else stoodStillMs += Number(step.slice('stop '.length));
    }
    expect(clock.now() - start).toBeCloseTo(expected, -2);
    clock.onApplicationShutdown();
  });

  it('ticks while a callback needs it, and no longer wakes an idle process', () => {
    const clock = new RunningClock();
    let [ticks, needed] = [0, false];
    const end = clock.onTick(() => {
      ticks += 1;
      return needed;
    });
    /** How often it ticks in the next second. */
    const ticksOfASecond = () => {
      ticks = 0;
      jest.advanceTimersByTime(1000);
      return ticks;
    };
    expect(ticksOfASecond()).toBe(0);
    clock.now();
    needed = true;
    expect(ticksOfASecond()).toBe(10);
    needed = false;
    expect(ticksOfASecond()).toBe(1);
    expect(jest.getTimerCount()).toBe(0);
    clock.now();
    // one tick later, it is not read any more
    expect(ticksOfASecond()).toBe(2);
    clock.now();
    end();
    expect(ticksOfASecond()).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });
});
