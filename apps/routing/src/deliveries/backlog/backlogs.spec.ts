import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createLog } from '#observability';
import { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import type { Claim } from '../store/delivery-store.js';
import { AT_ONCE, Backlogs, OF_ACCOUNT } from './backlogs.js';
import type { Drainer } from './drainer.js';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

/** Drains that end when the test lets them. */
function draining(store: DeliveryStoreInMemory) {
  const drains: { claim: Claim; othersWait: () => boolean; end: () => void }[] = [];
  const drain: Drainer['drain'] = (claim, othersWait = () => false) => new Promise<void>((end) => drains.push({ claim, othersWait, end }));
  const drainer = { drain, stop() {} } as unknown as Drainer;
  const backlogs = new Backlogs(createLog('test', 'silent'), store, drainer, Math.random);
  backlogs.onApplicationBootstrap();
  const end = async () => {
    for (const { end } of drains) end();
    await backlogs.beforeApplicationShutdown();
  };
  return { drains, end };
}

it('looks for the next backlog when one has been drained, while it drains as many as it may', async () => {
  const store = new DeliveryStoreInMemory();
  for (let n = 0; n <= AT_ONCE; n++) {
    store.addWebhook(`wh_${n}`, `u_${n}`);
    await store.spill(`wh_${n}`);
  }
  const looks = jest.spyOn(store, 'msToNext');
  const { drains, end } = draining(store);
  await jest.advanceTimersByTimeAsync(1000);
  expect(drains).toHaveLength(AT_ONCE);
  expect(drains.every(({ othersWait }) => othersWait())).toBe(true);
  looks.mockClear();
  await jest.advanceTimersByTimeAsync(10_000);
  expect(looks).not.toHaveBeenCalled();
  drains[0]!.end();
  await jest.advanceTimersByTimeAsync(100);
  expect(drains).toHaveLength(AT_ONCE + 1);
  await end();
});

it('drains the backlogs of others while an account has more of them than may be drained', async () => {
  const store = new DeliveryStoreInMemory();
  for (let n = 0; n < AT_ONCE; n++) {
    store.addWebhook(`wh_${n}`, 'u_1');
    await store.spill(`wh_${n}`);
  }
  const { drains, end } = draining(store);
  await jest.advanceTimersByTimeAsync(1000);
  expect(drains).toHaveLength(OF_ACCOUNT);
  expect(drains.every(({ othersWait }) => othersWait())).toBe(true);
  store.addWebhook('wh_other', 'u_2');
  await store.spill('wh_other');
  await jest.advanceTimersByTimeAsync(1000);
  expect(drains.slice(OF_ACCOUNT).map(({ claim }) => claim.webhookId)).toEqual(['wh_other']);
  expect(drains.at(-1)!.othersWait()).toBe(false);
  drains[0]!.end();
  await jest.advanceTimersByTimeAsync(1000);
  expect(drains.map(({ claim }) => claim.ownerId)).toEqual([...Array(OF_ACCOUNT).fill('u_1'), 'u_2', 'u_1']);
  await end();
});
