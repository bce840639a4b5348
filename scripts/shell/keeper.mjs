import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @type {import('node:child_process').ChildProcessByStdio<import('node:stream').Writable, null, null> | undefined} */
let keeper;

/**
 * Registers a process to be stopped if this process dies without stopping it.
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 * @param {{ kind?: 'app' | 'store', graceMs?: number }} [options] apps are stopped before the stores that they use; graceMs: how long the process may take
 *   to stop before it is killed
 */
export const watch = (pid, signal, { kind = 'app', graceMs = 15_000 } = {}) =>
  sendToKeeper(`watch ${kind}:${signal.replace('SIG', '')}:${Math.ceil(graceMs / 1000)}:${pid}`);

/**
 * The process has ended: another process may soon have its number.
 * @param {number} pid
 */
export const unwatch = (pid) => sendToKeeper(`unwatch ${pid}`);

/**
 * Registers a temporary folder to be removed when this process has ended, for whatever reason.
 * @param {string} folder
 */
export function removeAtEnd(folder) {
  // of a path with a line break, the keeper would read the first line, and remove another folder
  if (!folder.includes('\n')) sendToKeeper(`remove ${folder}`);
}

/** @param {string} line */
function sendToKeeper(line) {
  keeper ??= startKeeper();
  keeper.stdin.write(`${line}\n`);
}

/** One small process that watches all children, and exits after this process (`keeper.sh`). */
function startKeeper() {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'keeper.sh');
  // A separate session, so that Ctrl-C and "kill the whole group" do not end it first.
  const child = spawn('/bin/sh', [script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  // It must not keep this process running.
  child.unref();
  /** @type {import('node:net').Socket} */ (child.stdin).unref();
  return child;
}
