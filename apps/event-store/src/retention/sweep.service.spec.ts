import { expect, it, jest } from '@jest/globals';
import { createLog } from '#observability';
import { EventStoreConfig } from '../event-store.config.js';
import { SweepService } from './sweep.service.js';

it('a walk that takes longer than the interval is not followed by those that it delayed', async () => {
  jest.useFakeTimers();
  try {
    const walks: (() => void)[] = [];
    const events = {
      emittersAfter: () => new Promise<string[]>((resolve) => walks.push(() => resolve([]))),
      deleteOldWithdrawn: async () => {},
      deleteOldDeletions: async () => {},
    };
    const config = EventStoreConfig.read({ SLUICE_EVENT_SWEEP_MINUTES: '1' });
    const sweep = new SweepService(events as never, {} as never, config, createLog('test', 'silent'));
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
  } finally {
    jest.useRealTimers();
  }
});
