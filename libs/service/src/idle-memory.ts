import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MS = 10_000;
/** The share of the time that an idle event loop works at most. */
const IDLE = 0.03;
/** After this many looks at which a service was idle, its start or its burst of work is over. */
const OVER = 3;
const MB = 1024 * 1024;

export interface Heap {
  /** The size of the heap after the last collection here, in bytes; 0 before the first one. */
  before: number;
  size: number;
  /** How many times in a row the event loop was idle when it was looked at. */
  idleLooks: number;
}

/**
 * How many collections are worth their time, up to 0.1 s each. V8 drops the code of a function that has not run for several collections: what only the start
 * of a service needed is 3 MB.
 */
export function collectionsOf({ before, size, idleLooks }: Heap): number {
  if (idleLooks === OVER && size > before + 3 * MB) return 3;
  return idleLooks > OVER && size > before + 16 * MB ? 1 : 0;
}

/**
 * Returns memory to the system while the process is idle. V8 collects garbage when the program allocates: an idle service keeps for hours what its
 * start or its last burst of work needed, which is more than a third of its memory.
 */
export function freeMemoryWhenIdle(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: object) => void;
  let before = 0;
  let idleLooks = 0;
  let collections = 0;
  let last = performance.eventLoopUtilization();
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    idleLooks = performance.eventLoopUtilization(now, last).utilization < IDLE ? idleLooks + 1 : 0;
    last = now;
    if (idleLooks === 0) collections = 0;
    collections ||= collectionsOf({ before, size: getHeapStatistics().total_heap_size, idleLooks });
    if (collections === 0) return;
    // one at each look: code that an idle service runs meanwhile is kept
    collections -= 1;
    // the usual collection leaves the space for new objects as large as the last burst of work made it
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    before = getHeapStatistics().total_heap_size;
    // so that the collection does not count as work
    last = performance.eventLoopUtilization();
  };
  setInterval(look, LOOK_MS).unref();
}
