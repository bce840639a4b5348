import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @type {import('node:child_process').ChildProcessByStdio<import('node:stream').Writable, null, null> | undefined} */
let keeper;

/**
 * Has a process stopped if this one dies without stopping it.
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
export const watch = (pid, signal) => tellKeeper(`watch ${pid} ${signal.replace('SIG', '')}`);

/**
 * It has ended: its number may be a stranger's soon.
 * @param {number} pid
 */
export const forget = (pid) => tellKeeper(`forget ${pid}`);

/**
 * Has a temporary folder removed when this process has ended, one way or the other.
 * @param {string} folder
 */
export const removeAtEnd = (folder) => tellKeeper(`remove ${folder}`);

/** @param {string} line */
function tellKeeper(line) {
  keeper ??= startKeeper();
  keeper.stdin.write(`${line}\n`);
}

/** One small process that looks after all our children, and leaves after us (`keeper.sh`). */
function startKeeper() {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'keeper.sh');
  // A session of its own: Ctrl-C and "kill the whole group" must not take it away first.
  const child = spawn('/bin/sh', [script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  // It must not keep us running.
  child.unref();
  /** @type {import('node:net').Socket} */ (child.stdin).unref();
  return child;
}
