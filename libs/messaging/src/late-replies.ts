import { AsyncLocalStorage } from 'node:async_hooks';
import type { TimedOut } from '#contracts';

type OnLate = (error: TimedOut) => void;

const storage = new AsyncLocalStorage<OnLate>();

/**
 * Runs `work`, whose requests to other services do not fail when there is no reply in time: `onLate` is called, and the request waits for the late
 * reply.
 */
export const withLateReplies = <T>(onLate: OnLate, work: () => T): T => storage.run(onLate, work);

export const currentLateHandler = (): OnLate | undefined => storage.getStore();
