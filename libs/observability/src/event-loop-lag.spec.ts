import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { EventLoopLag } from './event-loop-lag.js';
import { collectProcessMetrics, metrics } from './metrics.js';

const block = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

it('measures how late the event loop is', async () => {
  const lag = new EventLoopLag();
  lag.enable();
  // the first interval is not recorded
  while (lag.max < 200e6) {
    await sleep(250);
    block(400);
  }
});

it('takes no samples while the process is idle', async () => {
  const times = { active: 0, idle: 0 };
  const lag = new EventLoopLag(() => ({ ...times }));
  const work = (active: number, idle: number) => {
    times.active += active;
    times.idle += idle;
    lag.look();
  };
  work(60, 940);
  while (lag.max < 100e6) {
    await sleep(250);
    block(300);
  }
  work(40, 960);
  lag.reset();
  block(200);
  await sleep(150);
  expect([lag.min, lag.max, lag.mean, lag.stddev, lag.percentile(50), lag.percentile(99)]).toEqual([0, 0, 0, 0, 0, 0]);
  work(1000, 0);
  while (lag.max < 100e6) {
    await sleep(250);
    block(300);
  }
});

it('shows the lag of an idle process as 0 in its metrics', async () => {
  const look = collectProcessMetrics();
  const text = await metrics.metrics();
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds 0$/m);
  expect(text).toMatch(/^nodejs_eventloop_lag_min_seconds 0$/m);
  expect(text).toMatch(/^process_cpu_seconds_total \d/m);
  look();
});
