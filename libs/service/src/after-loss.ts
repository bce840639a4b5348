import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumers } from '#messaging';
import type { Log } from '#observability';

const RETRY_MS = 1000;

/**
 * Repairs what depends on the records of a topic whenever Kafka has lost them: a consumer may not have read all of them. All partitions are lost at the same
 * time and recognised one by one, so `repair` runs once for them, and again until it succeeds, also after a crash. It returns numbers for the log.
 * @returns ends a repetition
 */
export function afterLossOf(
  topic: string,
  { consumers, log }: { consumers: Consumers; log: Log },
  repair: () => Promise<Record<string, number>>,
): () => void {
  let repairing: Promise<void> | undefined;
  let stopped = false;
  const untilRepaired = async (): Promise<void> => {
    while (!stopped) {
      try {
        return log.warn({ topic, ...(await repair()) }, 'log.loss-repaired');
      } catch (error) {
        if (stopped) break;
        log.error({ topic, reason: (error as Error).message }, 'log.loss-not-repaired');
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
    // the next process repairs it
    return new Promise(() => {});
  };
  consumers.onReplaced(async (replaced) => {
    if (replaced !== topic) return;
    repairing ??= untilRepaired().finally(() => (repairing = undefined));
    await repairing;
  });
  return () => void (stopped = true);
}
