import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createLog } from '#observability';
import { EventStoreConfig } from '../event-store.config.js';
import { SweepService } from './sweep.service.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A sweep in this interval, in minutes, and its walks: each ends when its function is called. */
function sweepEach(minutes: string) {
  const walks: (() => void)[] = [];
  const events = {
    emittersAfter: () => new Promise<string[]>((resolve) => walks.push(() => resolve([]))),
    deleteOldWithdrawn: async () => {},
    deleteOldDeletions: async () => {},
  };
  const config = EventStoreConfig.read({ SLUICE_EVENT_SWEEP_MINUTES: minutes });
  return { walks, sweep: new SweepService(events as never, {} as never, config, createLog('test', 'silent')) };
}

it('walks five minutes after the start, however long the interval is', async () => {
  const { sweep, walks } = sweepEach('10000');
  sweep.onApplicationBootstrap();
  await jest.advanceTimersByTimeAsync(5 * 60_000);
  expect(walks).toHaveLength(1);
  walks[0]!();
  await sweep.beforeApplicationShutdown();
  expect(jest.getTimerCount()).toBe(0);
});

it('a walk that takes longer than the interval is not followed by those that it delayed', async () => {
  const { sweep, walks } = sweepEach('1');
  sweep.onApplicationBootstrap();
  await jest.advanceTimersByTimeAsync(5 * 60_000);
  expect(walks).toHaveLength(1);
  walks[0]!();
  await jest.advanceTimersByTimeAsync(30_000);
  expect(walks).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(30_000);
  expect(walks).toHaveLength(2);
  walks[1]!();
  await sweep.beforeApplicationShutdown();
});
