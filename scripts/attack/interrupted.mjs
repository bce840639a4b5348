import { ExplainedError } from '../shell/explained-error.mjs';

/**
 * A signal that is aborted when this process is interrupted. From then on, the process does not end by itself: its caller cleans up.
 * @returns {AbortSignal}
 */
export function whenInterrupted() {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => interrupted.abort(new ExplainedError('Interrupted.')));
  return interrupted.signal;
}
