import { spawn } from 'node:child_process';
import { unwatch, watch } from './keeper.mjs';

/** @type {Map<import('node:child_process').ChildProcess, Promise<unknown>>} */
const running = new Map();

/**
 * Stops the running commands because the launcher is being stopped. Resolves when they have ended,
 * because an npm that is still writing would disturb the next one.
 */
export async function stopCommands() {
  const children = [...running];
  for (const [child] of children) child.kill('SIGTERM');
  const timer = setTimeout(() => children.forEach(([child]) => child.kill('SIGKILL')), 10_000);
  await Promise.all(children.map(([, ended]) => ended));
  clearTimeout(timer);
}

/**
 * Runs a command and collects its output.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, uid?: number, gid?: number }} [options]
 * @returns {Promise<{ code: number | null, stdout: string, output: string, missing: boolean }>}
 *   `output` contains both streams in order; `missing`: the command does not exist or is not executable
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    running.set(child, new Promise((ended) => child.once('exit', ended).once('error', ended)));
    const { pid } = child;
    if (pid !== undefined) {
      // if this process is killed, the command must not write what the command of the next start writes, too
      watch(pid, 'SIGKILL', { graceMs: 0 });
      child.once('exit', () => unwatch(pid));
    }
    let stdout = '';
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    /** @param {number | null} code @param {boolean} missing */
    const done = (code, missing) => {
      running.delete(child);
      resolve({ code, stdout, output, missing });
    };
    child.on('error', (error) => {
      output += error.message;
      done(null, true);
    });
    child.on('close', (code) => done(code, false));
  });
}
