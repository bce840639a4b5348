import { AsyncLocalStorage } from 'node:async_hooks';
import type { TimedOut } from '#contracts';

type OnSlow = (error: TimedOut) => void;

const storage = new AsyncLocalStorage<OnSlow>();

/**
 * Runs `work`, whose requests to other services do not fail when there is no reply in time: `onSlow` is called, and the request waits for the late
 * reply.
 */
export const withPatience = <T>(onSlow: OnSlow, work: () => T): T => storage.run(onSlow, work);

export const currentPatience = (): OnSlow | undefined => storage.getStore();
