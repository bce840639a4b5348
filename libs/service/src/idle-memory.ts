import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MS = 10_000;
/** The share of the time that an idle event loop works at most. A collection takes up to 0.1 s. */
const IDLE = 0.03;
/** The least growth of a heap since the last collection, in bytes. */
const GROWN_BYTES = 16 * 1024 * 1024;
/** Collections after the start. V8 drops the code of a function that has not run for several collections: what only the start needed is 3 MB. */
const AFTER_START = 3;

export interface Heap {
  /** The size of the heap after the last collection here, in bytes; 0 before the first one. */
  before: number;
  size: number;
  /** The share of the time since the last look that the event loop worked, from 0 to 1. */
  utilization: number;
}

export const isWorthCollecting = ({ before, size, utilization }: Heap): boolean => utilization < IDLE && size > before + GROWN_BYTES;

/**
 * Returns memory to the system while the service is idle. V8 collects garbage when the program allocates: an idle service keeps for hours what its
 * start or its last burst of work needed, which is more than a third of its memory.
 */
export function freeMemoryWhenIdle(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: object) => void;
  let before = 0;
  let last = performance.eventLoopUtilization();
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const size = getHeapStatistics().total_heap_size;
    if (!isWorthCollecting({ before, size, utilization })) return;
    // the usual collection leaves the space for new objects as large as the last burst of work made it
    for (let left = before === 0 ? AFTER_START : 1; left > 0; left--) gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    before = getHeapStatistics().total_heap_size;
  };
  setInterval(look, LOOK_MS).unref();
}
