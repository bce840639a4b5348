import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Session } from '#database';
import { createLog } from '#observability';
import type { WaitingData } from '#waiting-data';
import { Ticker, tickRun } from './ticker.js';
import type { DueTimer, TimersRepository } from './timers.repository.js';

it('lets other work have its turn while it computes the ticks of many timers', async () => {
  const due = Array.from({ length: 500 }, (_, n): DueTimer => ({
    ...{ source_id: `dc_${n}`, owner_id: 'u_1', prop: 'timer', schedule: { interval_seconds: null, cron: '0 * * * *' } },
    ...{ next_run_at: new Date(1000), set_at: null, run_id: null },
  }));
  let ticks: (Date | null)[] = [];
  const timers: Pick<TimersRepository, 'listen' | 'claimDue'> = {
    listen: () => {},
    claimDue: async (_, tick) => (ticks = await tick({ query: async () => {} } as unknown as Session as never, due, new Date(1000))).length,
  };
  const ticker = new Ticker(timers as TimersRepository, { list: () => [] } as unknown as WaitingData, createLog('test', 'silent'));
  let turns = 0;
  const count = () => void (turns++, (next = setImmediate(count)));
  let next = setImmediate(count);
  await ticker.handleDue();
  clearImmediate(next);
  expect(turns).toBeGreaterThan(20);
  expect(ticks).toHaveLength(500);
  expect(new Set(ticks.map((at) => at?.getUTCHours()))).toEqual(new Set([1]));
});

it('does not correct further timers when the process stops, and ends its statement before', async () => {
  let running = 0;
  let pages = 0;
  const timers: Pick<TimersRepository, 'listen' | 'msToNext' | 'distant' | 'bringForward'> = {
    listen: () => {},
    msToNext: async () => null,
    distant: async () => {
      running++;
      await nextTurn();
      running--;
      pages++;
      const now = new Date();
      return [{ source_id: 'dc_1', prop: 'timer', schedule: { interval_seconds: 1, cron: null }, next_run_at: now, now }];
    },
    bringForward: async () => 0,
  };
  const ticker = new Ticker(timers as TimersRepository, { list: () => [] } as unknown as WaitingData, createLog('test', 'silent'));
  ticker.onApplicationBootstrap();
  while (pages < 3) await nextTurn();
  await ticker.beforeApplicationShutdown();
  expect(running).toBe(0);
  const before = pages;
  await ticker.correct();
  expect(pages).toBe(before);
});

it('passes the time of the tick to the run, so that consecutive ticks of a timer differ even if one is late', () => {
  const ticks = ['10:00:00.900', '10:00:01.900'].map((time) => new Date(`2026-03-01T${time}Z`));
  const runs = ticks.map((next_run_at) =>
    tickRun({
      ...{ source_id: 'dc_1', owner_id: 'u_1', prop: 'timer', schedule: { interval_seconds: 1, cron: null } },
      ...{ next_run_at, set_at: null, run_id: null },
    }),
  );
  const seconds = Date.UTC(2026, 2, 1, 10) / 1000;
  expect(runs.map(({ event }) => JSON.parse(event ?? 'null') as unknown)).toEqual([
    { timestamp: seconds, interval_seconds: 1 },
    { timestamp: seconds + 1, interval_seconds: 1 },
  ]);
});
