import { expect, it } from '@jest/globals';
import { tickRun } from './ticker.js';

it('passes the time of the tick to the run, so that consecutive ticks of a timer differ even if one is late', () => {
  const ticks = ['10:00:00.900', '10:00:01.900'].map((time) => new Date(`2026-03-01T${time}Z`));
  const runs = ticks.map((next_run_at) =>
    tickRun({ source_id: 'dc_1', owner_id: 'u_1', prop: 'timer', schedule: { interval_seconds: 1, cron: null }, next_run_at }),
  );
  const seconds = Date.UTC(2026, 2, 1, 10) / 1000;
  expect(runs.map(({ event }) => JSON.parse(event ?? 'null') as unknown)).toEqual([
    { timestamp: seconds, interval_seconds: 1 },
    { timestamp: seconds + 1, interval_seconds: 1 },
  ]);
});
