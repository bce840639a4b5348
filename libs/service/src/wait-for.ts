import type { Log } from '#observability';
import { explainOutage, CannotStart } from './explain.js';
import { ServiceConfig } from './service.config.js';

export interface WaitOptions {
  /** The name of what is awaited, such as "Kafka at kafka:9092". */
  name: string;
  /** When to give up, in ms since the epoch. */
  deadline: number;
  log: Log;
  /**
   * Resolves with the reason to keep waiting, or with undefined if there is nothing to wait for.
   * @throws CannotStart when waiting does not help
   */
  check(): Promise<string | undefined>;
}

const PAUSE_MS = 500;
const REPORT_EVERY_MS = 10_000;

/** Waits, and logs the reason every ten seconds. Throws CannotStart at the deadline. */
export async function waitFor({ name, deadline, log, check }: WaitOptions): Promise<void> {
  for (let reportAt = 0; ;) {
    const reason = await check();
    if (reason === undefined) return;
    const now = Date.now();
    if (now >= deadline) throw new CannotStart(`gave up waiting for ${name}: ${reason}`);
    if (now >= reportAt) {
      log.info({ reason }, `waiting for ${name}`);
      reportAt = now + REPORT_EVERY_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Retries work that needs the stores while they are down, up to the time limit of a start. Throws at once if waiting does not help. */
export async function retryUntilStoresRespond<T>(log: Log, work: () => Promise<T>): Promise<T> {
  let result!: T;
  await waitFor({
    name: 'the stores',
    deadline: Date.now() + ServiceConfig.read().startupTimeoutMs,
    log,
    check: async () => {
      try {
        result = await work();
        return undefined;
      } catch (error) {
        const reason = explainOutage(error);
        if (reason === undefined) throw error;
        return reason;
      }
    },
  });
  return result;
}
