import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import { lastDescendant, processUsage } from './process-usage.js';

export interface JailedRun {
  /** The exit status, the signal, or `time`, `cpu` or `output` for the limit that ended it */
  exit: string;
  output: string;
  errors: string;
}

const keptErrors = 65_536;
const tickMs = 100;

export interface TimeLimits {
  wallMs: number;
  /** Default: no limit */
  cpuMs?: number;
  /** Ends it; the reason becomes its exit */
  signal?: AbortSignal;
}

/** Runs a program in the jail to its end. Never rejects. */
export function runInJail(
  jail: Jail,
  program: JailedProgram,
  { wallMs, cpuMs = Infinity, signal: ending }: TimeLimits,
  outputBytes: number,
): Promise<JailedRun> {
  return new Promise((resolve) => {
    const child = startInJail(jail.command(program), 'pipe', 'ignore');
    const output: Buffer[] = [];
    let bytes = 0;
    let errors = '';
    let limit: string | null = null;
    const stop = (reason: string): void => {
      limit ??= reason;
      const inner = child.pid === undefined ? 0 : lastDescendant(child.pid);
      child.kill('SIGKILL');
      if (inner && inner !== child.pid) killQuietly(inner);
    };
    const timer = setTimeout(() => stop('time'), wallMs);
    const ticker = setInterval(() => {
      const usage = child.pid === undefined ? null : processUsage(lastDescendant(child.pid));
      if (usage && usage.cpuMs > cpuMs) stop('cpu');
    }, tickMs);
    ending?.addEventListener('abort', () => stop(String(ending.reason)));
    child.stdout!.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > outputBytes) stop('output');
      else output.push(chunk);
    });
    child.stderr!.on('data', (chunk: Buffer) => {
      if (errors.length < keptErrors) errors += chunk.toString();
    });
    child.on('error', ({ message }) => (errors = message));
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      clearInterval(ticker);
      resolve({ exit: limit ?? String(signal ?? status), output: Buffer.concat(output).toString(), errors });
    });
  });
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return;
  }
}

/**
 * @param output the program's standard output
 * @param channel its descriptor 3
 */
export function startInJail(command: JailCommand, output: 'pipe' | 'ignore', channel: 'pipe' | 'ignore'): ChildProcess {
  const descriptors = command.descriptorFiles.map((file) => openSync(file, 'r'));
  try {
    return spawn(command.file, command.args, { env: command.env, cwd: '/', stdio: ['ignore', output, 'pipe', channel, ...descriptors] });
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}
