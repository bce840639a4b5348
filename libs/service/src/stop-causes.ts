/** @param reason a signal, or `launcher gone` */
type Stop = (reason: string) => void;

/**
 * Calls `stop` at SIGTERM, SIGINT and the launcher's exit. The listeners stay when the function is replaced: after the last listener of a signal is removed,
 * Node drops signals that have arrived but have not been handled, even if another listener is added at once.
 *
 * @returns a function that replaces `stop`
 */
export function onStopCause(stop: Stop): (next: Stop) => void {
  let current = stop;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => current(signal));
  // the launcher is gone, even by kill -9: nobody else would stop this process
  process.on('disconnect', () => current('launcher gone'));
  if (process.send && !process.connected) current('launcher gone');
  return (next) => {
    current = next;
  };
}
