import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<string>();

/** Runs `work` in the name of a request: its id goes with every log line and every message sent from there. */
export const withRequestId = <T>(requestId: string, work: () => T): T => storage.run(requestId, work);

export const currentRequestId = (): string | undefined => storage.getStore();
