const SHORTEST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

/**
 * Repeats the check until it does not throw, and returns its result. Throws the last error when the check has failed with the same message for `withinMs`:
 * a busy machine is slow, but the message shows its progress. Throws it in any case after four times that long.
 */
export async function eventually<T>(check: () => T | Promise<T>, { withinMs = 30_000 } = {}): Promise<T> {
  const begunAt = Date.now();
  let last = { message: '', since: begunAt };
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const now = Date.now();
      const message = String(error);
      if (message !== last.message) last = { message, since: now };
      if (now - last.since > withinMs || now - begunAt > 4 * withinMs) throw error;
      // a check costs the system that it waits for
      const pauseMs = Math.min(Math.max((now - begunAt) / 10, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
