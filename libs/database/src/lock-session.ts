const EVERY_MS = 5000;

/**
 * SQL for a statement that takes an advisory lock of its session: from then on, the server ends the session after 20 s without a statement, and frees
 * its locks. Otherwise a process that is frozen would hold them until it continues, because its host still acknowledges what the server sends. Run a
 * statement every few seconds, such as with `keepSession`.
 */
export const END_WHEN_IDLE = "set_config('idle_session_timeout', '20s', false)";

/** SQL for the statement that releases the last lock of a session: it may be idle again. */
export const STAY_WHEN_IDLE = "set_config('idle_session_timeout', '0', false)";

/**
 * Runs a statement every 5 s, for a session that holds locks and waits for something else. Returns a function that ends this, and resolves when no such
 * statement is active.
 */
export function keepSession(query: (text: string) => Promise<unknown>, everyMs = EVERY_MS): () => Promise<void> {
  let active: Promise<void> | undefined;
  const timer = setInterval(() => {
    active ??= query('SELECT').then(
      () => (active = undefined),
      // the connection is lost: its user's next statement reports that
      () => (active = undefined),
    );
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await active;
  };
}
