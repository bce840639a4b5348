import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createLog } from '#observability';
import { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import { AT_ONCE, Backlogs } from './backlogs.js';
import type { Drainer } from './drainer.js';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

it('looks for the next backlog when one has been drained, while it drains as many as it may', async () => {
  const store = new DeliveryStoreInMemory();
  for (let n = 0; n <= AT_ONCE; n++) {
    store.addWebhook(`wh_${n}`, 'u_1');
    await store.spill(`wh_${n}`, null);
  }
  const ends: (() => void)[] = [];
  const drainer = { drain: () => new Promise<void>((resolve) => ends.push(resolve)), stop() {} } as unknown as Drainer;
  const looks = jest.spyOn(store, 'msToNext');
  const backlogs = new Backlogs(createLog('test', 'silent'), store, drainer, Math.random);
  backlogs.onApplicationBootstrap();
  await jest.advanceTimersByTimeAsync(1000);
  expect(ends).toHaveLength(AT_ONCE);
  looks.mockClear();
  await jest.advanceTimersByTimeAsync(10_000);
  expect(looks).not.toHaveBeenCalled();
  ends[0]!();
  await jest.advanceTimersByTimeAsync(100);
  expect(ends).toHaveLength(AT_ONCE + 1);
  for (const end of ends) end();
  await backlogs.beforeApplicationShutdown();
});
