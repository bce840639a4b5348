import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * A small process beside this one that stops our children when we are killed (`keeper.sh` says how it notices).
 *
 * @typedef {object} Keeper
 * @property {(pid: number, signal: NodeJS.Signals) => void} watch stop this process, by this signal, if we die
 * @property {(pid: number) => void} forget it has ended; its number may be a stranger's soon
 * @property {() => void} dismiss everything was stopped in good order
 *
 * @param {{ removeFolder?: string }} [options] a folder to remove in the end (the tests' temporary one)
 * @returns {Keeper}
 */
export function startKeeper({ removeFolder } = {}) {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'keeper.sh');
  // A session of its own: Ctrl-C and "kill the whole group" must not take it away first.
  const child = spawn('/bin/sh', [script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.on('error', () => {});
  child.stdin.on('error', () => {});
  child.unref();
  /** @type {any} */ (child.stdin).unref();
  /** @param {string} line */
  const tell = (line) => child.stdin.write(`${line}\n`);
  if (removeFolder) tell(`remove ${removeFolder}`);
  return {
    watch: (pid, signal) => tell(`watch ${pid} ${signal.replace('SIG', '')}`),
    forget: (pid) => tell(`forget ${pid}`),
    dismiss: () => child.stdin.end('bye\n'),
  };
}
