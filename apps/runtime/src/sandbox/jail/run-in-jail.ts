import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { SandboxUnavailable } from '../sandbox.js';
import type { Jail, JailCommand, JailedProgram } from './jail.js';
import { niceness, reniceSession } from './process-priority.js';
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

/**
 * Starts the work when there is memory for another process, and ends it by the signal when little is left.
 * @param until when the caller stops waiting, in ms since the epoch
 * @throws SandboxUnavailable if there was not enough memory
 */
export type WithMemory = <T>(until: number, work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Runs a program in the jail to its end. @throws SandboxUnavailable if it cannot be started */
export async function runInJail(
  jail: Jail,
  program: JailedProgram,
  { wallMs, cpuMs = Infinity, signal: ending }: TimeLimits,
  outputBytes: number,
): Promise<JailedRun> {
  const child = await startInJail(jail.command(program), 'pipe', 'ignore');
  return new Promise((resolve) => {
    const output: Buffer[] = [];
    let bytes = 0;
    let errors = '';
    let limit: string | null = null;
    const stop = (reason: string): void => {
      limit ??= reason;
      killJailed(child, lastDescendant(child.pid!));
    };
    const timer = setTimeout(() => stop('time'), wallMs);
    const ticker = setInterval(() => {
      const usage = processUsage(lastDescendant(child.pid!));
      if (usage && usage.cpuMs > cpuMs) stop('cpu');
    }, tickMs);
    const end = (): void => stop(String(ending?.reason));
    ending?.addEventListener('abort', end);
    if (ending?.aborted) end();
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
      // its process id may be that of another process by then
      ending?.removeEventListener('abort', end);
      resolve({ exit: limit ?? String(signal ?? status), output: Buffer.concat(output).toString(), errors });
    });
  });
}

/** Kills both: killing the launcher may or may not end the program. @param program the pid of the program that the launcher has started */
export function killJailed(launcher: ChildProcess, program: number): void {
  launcher.kill('SIGKILL');
  if (program !== launcher.pid) killProcess(program);
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}

/**
 * Resolves before the program has any output.
 * @param output the program's standard output
 * @param channel its descriptor 3
 * @throws SandboxUnavailable if it cannot be started
 */
export async function startInJail(command: JailCommand, output: 'pipe' | 'ignore', channel: 'pipe' | 'ignore'): Promise<ChildProcess> {
  const descriptors: number[] = [];
  try {
    for (const file of command.descriptorFiles) descriptors.push(openSync(file, 'r'));
    const { file, args, env } = command;
    // in its own session: Linux may schedule those of a session as one, and what a component uses must not count as the runtime's
    const child = spawn(file, args, { env, cwd: '/', detached: true, stdio: ['ignore', output, 'pipe', channel, ...descriptors] });
    // Node throws some errors and emits others; without descriptors (EMFILE), the child does not even have streams
    await once(child, 'spawn');
    reniceSession(child.pid!, niceness.ordinary);
    return child;
  } catch (error) {
    throw new SandboxUnavailable(`A process cannot be started: ${(error as Error).message}`);
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}
