import { spawn } from 'node:child_process';

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/** Stops the commands that are under way: the launcher has been told to stop in the middle of them. */
export function stopCommands() {
  for (const child of running) child.kill('SIGTERM');
}

/**
 * Runs a command to its end and collects what it prints.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, uid?: number, gid?: number }} [options]
 * @returns {Promise<{ code: number | null, stdout: string, output: string, missing: boolean }>}
 *   `output` holds both streams in the order they came; `missing`: there is no such command, or it may not be run
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
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
