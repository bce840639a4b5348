import { fork } from 'node:child_process';
import { ExplainedError } from '../shell/explained-error.mjs';
import { describeExit } from './service-process.mjs';

/** @typedef {{ result?: any, error?: { message: string, stack?: string, isExplained: boolean } }} Response */

/**
 * Calls a module in a separate process, which then ends: the packages that it loads do not stay in the memory of this process.
 *
 * @param {string} module a file that calls {@link respondToCaller}
 * @param {unknown} input JSON; nobody else can read it, unlike the arguments of a process
 * @param {AbortSignal} [abandoned] ends the process
 * @returns {Promise<any>} what the module returned, as JSON; fails as the module failed
 */
export function callInOwnProcess(module, input, abandoned) {
  return new Promise((resolve, reject) => {
    // Ctrl-C reaches only the launcher, which ends its processes in order
    const child = fork(module, { execArgv: [], detached: true, signal: abandoned, killSignal: 'SIGKILL' });
    child.on('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`${module} ended without a response (${describeExit({ code, signal })})`)));
    child.once('message', (/** @type {Response} */ { result, error }) => {
      if (!error) resolve(result);
      else if (error.isExplained) reject(new ExplainedError(error.message));
      else reject(Object.assign(new Error(error.message), { stack: error.stack }));
    });
    // an error is also one of the child
    child.send(/** @type {any} */ (input), () => {});
  });
}

/**
 * Responds to the process that has called this module with {@link callInOwnProcess}, and ends. It also ends with that process.
 * @template T
 * @param {(input: T) => Promise<unknown>} work
 */
export function respondToCaller(work) {
  process.once('disconnect', () => process.exit());
  process.once('message', async (/** @type {T} */ input) => {
    /** @type {Response} */
    const response = await work(input).then(
      (result) => ({ result }),
      (error) => ({ error: { message: error.message, stack: error.stack, isExplained: error instanceof ExplainedError } }),
    );
    process.send?.(response, () => process.exit());
  });
}
