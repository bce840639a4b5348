import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<string>();

/** Runs `work` on behalf of a request: the request id is added to every log line and every message sent from there. */
export const withRequestId = <T>(requestId: string, work: () => T): T => storage.run(requestId, work);

export const currentRequestId = (): string | undefined => storage.getStore();
