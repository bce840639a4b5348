import { ExplainedError } from '../shell/explained-error.mjs';
import { signalJest } from './run-jest.mjs';
import { stopCommands } from '../shell/run.mjs';

/**
 * Runs an action, and cleans up after it even if it fails or is interrupted: at the first Ctrl-C (SIGTERM, SIGHUP) it stops the running commands
 * and tests, and then cleans up.
 *
 * @template T
 * @param {() => Promise<T>} action
 * @param {() => Promise<void>} cleanUp
 * @returns {Promise<T>}
 */
export async function interruptible(action, cleanUp) {
  /** @type {NodeJS.Signals | undefined} */
  let interrupted;
  /** @param {NodeJS.Signals} signal */
  const interrupt = (signal) => {
    if (interrupted) return;
    interrupted = signal;
    console.log('… interrupted: cleaning up, which takes a few seconds');
    signalJest(signal);
    void stopCommands();
  };
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, interrupt);
  try {
    return await action();
  } catch (error) {
    throw interrupted ? new ExplainedError('Interrupted.') : error;
  } finally {
    await cleanUp();
  }
}
