import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EventLoopLag } from './event-loop-lag.js';
import { collectProcessMetrics, metrics } from './metrics.js';

describe('the lag of the event loop', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** A process, and a function that lets a second pass, in which its event loop works for `worked` ms and is then blocked for `blockedMs`. */
  const watched = () => {
    const times = { active: 0, idle: 0 };
    let blocked = 0;
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + blocked);
    const lag = new EventLoopLag(() => ({ ...times }));
    const second = (worked: number, blockedMs = 0) => {
      jest.advanceTimersByTime(950);
      blocked += blockedMs;
      jest.advanceTimersByTime(50);
      times.active += worked + blockedMs;
      times.idle += 1000 - worked;
      lag.look();
    };
    return { lag, second };
  };
  const shown = ({ min, max, mean }: EventLoopLag) => [min, max, mean].map((ns) => Math.round(ns / 1e6));

  it('is sampled ten times per second while the process works', () => {
    const { lag, second } = watched();
    second(60);
    lag.reset();
    second(60, 400);
    const [min, max, mean] = shown(lag);
    expect([min, mean]).toEqual([0, 40]);
    expect(max).toBeCloseTo(400, -1);
  });

  it('is sampled once per second in an idle process, also if it blocks', () => {
    const { lag, second } = watched();
    second(10);
    expect(jest.getTimerCount()).toBe(0);
    lag.reset();
    second(10);
    second(10, 400);
    const [min, max, mean] = shown(lag);
    expect([min, mean]).toEqual([0, 200]);
    expect(max).toBeCloseTo(400, -1);
  });

  it('does not include the time in which the process was idle', () => {
    const { lag, second } = watched();
    for (const worked of [60, 10, 10, 60, 60, 10, 60]) second(worked);
    expect(shown(lag)).toEqual([0, 0, 0]);
  });

  it('has the value 0 in every metric if nothing was sampled since the last reset', () => {
    const { lag, second } = watched();
    second(60, 300);
    lag.reset();
    const { min, max, mean, stddev } = lag;
    expect([min, max, mean, stddev, lag.percentile(50), lag.percentile(99)]).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

it('shows the lag of the event loop in the metrics of the process', async () => {
  const look = collectProcessMetrics();
  look();
  const text = await metrics.metrics();
  for (const name of ['min', 'max', 'mean', 'p50', 'p99'])
    expect(text).toMatch(new RegExp(`^nodejs_eventloop_lag_${name}_seconds \\d[0-9.e-]*$`, 'm'));
  expect(text).toMatch(/^process_cpu_seconds_total \d/m);
});
