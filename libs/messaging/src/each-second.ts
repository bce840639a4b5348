const SECOND_MS = 1000;

const work = new Set<() => void>();
let timer: NodeJS.Timeout | undefined;

/**
 * Calls `callback` once per second, until the returned function is called. All callbacks of a process share one timer, which does not keep the process
 * alive: after a pause, a wake-up costs more than what most callbacks do, because the caches of the CPU are cold.
 */
export function eachSecond(callback: () => void): () => void {
  // the same function may be passed twice
  const own = () => callback();
  work.add(own);
  timer ??= setInterval(callAll, SECOND_MS).unref();
  return () => {
    work.delete(own);
    if (work.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function callAll(): void {
  for (const each of work) each();
}
