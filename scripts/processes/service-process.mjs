import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, statfsSync, statSync } from 'node:fs';
import { copyFile, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExplainedError } from '../shell/explained-error.mjs';
import { unwatch, watch } from '../shell/keeper.mjs';
import { removePidFile, writePidFile } from '../pid-files/pid-file.mjs';

/**
 * @typedef {{ code: number | null, signal: NodeJS.Signals | null, error?: Error }} Exit
 *
 * A long-running child process: the broker, PostgreSQL, an app.
 * @typedef {object} ServiceProcess
 * @property {string} name
 * @property {'app' | 'store'} kind apps are stopped before the stores that they use
 * @property {number} pid 0 if it could not be started (then `exited` contains the reason)
 * @property {import('node:child_process').ChildProcess} child
 * @property {Promise<Exit>} exited
 * @property {(graceMs?: number) => Promise<void>} stop gracefully; by force if that takes longer than the grace period
 * @property {() => Promise<void>} kill at once
 * @property {(signal: NodeJS.Signals) => void} signal
 */

/** @type {Set<ServiceProcess>} */
const live = new Set();

/** The services of this process that are running. */
export const liveServices = () => [...live];

/**
 * @param {object} options
 * @param {string} options.name
 * @param {'app' | 'store'} options.kind
 * @param {string} options.command
 * @param {string[]} options.args
 * @param {import('node:child_process').SpawnOptions} options.spawn
 * @param {string} [options.pidFile]
 * @param {NodeJS.Signals} [options.stopSignal]
 * @param {NodeJS.Signals} [options.killSignal]
 * @param {number} [options.graceMs]
 * @returns {ServiceProcess}
 * @throws if `pidFile` cannot be written; then nothing is left running
 */
export function startServiceProcess(options) {
  const { name, kind, command, args, pidFile, stopSignal = 'SIGTERM', killSignal = 'SIGKILL', graceMs = 10_000 } = options;
  // Detached = a separate session: Ctrl-C in the terminal reaches only the launcher, which then stops everything in order.
  const child = spawn(command, args, { ...options.spawn, detached: true });
  const pid = child.pid ?? 0;
  if (pid) watch(pid, stopSignal, { kind, graceMs });
  /** @type {Promise<Exit>} */
  const exited = new Promise((resolve) => {
    child.once('error', (error) => pid || resolve({ code: null, signal: null, error }));
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  /** @type {ServiceProcess} */
  const service = {
    name,
    kind,
    pid,
    child,
    exited,
    signal: (signal) => void child.kill(signal),
    kill: async () => {
      child.kill(killSignal);
      await exited;
    },
    stop: async (within = graceMs) => {
      child.kill(stopSignal);
      const timer = setTimeout(() => child.kill('SIGKILL'), within);
      await exited;
      clearTimeout(timer);
    },
  };
  live.add(service);
  void exited.then(() => {
    live.delete(service);
    if (pid) unwatch(pid);
    if (pidFile) removePidFile(pidFile);
  });
  if (pid && pidFile) recordOrKill(pidFile, service);
  return service;
}

/**
 * A process that a later start could not find, for instance because the disk is full, must not remain.
 * @param {string} pidFile
 * @param {ServiceProcess} service
 */
function recordOrKill(pidFile, service) {
  try {
    writePidFile(pidFile, service.pid);
  } catch (error) {
    void service.kill();
    throw error;
  }
}

// For a service that is not ready: nobody uses it yet.
const UNREADY_GRACE_MS = 2000;

/**
 * Resolves when a service that has just been started is ready. Ends the service if that fails, or if the start is stopped.
 *
 * @param {ServiceProcess} service
 * @param {(abandoned: AbortSignal) => Promise<void>} becomeReady `abandoned`: aborted when the caller no longer waits
 * @param {AbortSignal} [stopped]
 * @returns {Promise<Exit | null>} how it ended; null: it is ready
 */
export async function untilReady(service, becomeReady, stopped) {
  const abandoned = new AbortController();
  /** @type {Promise<never>} */
  const isStopped = new Promise((_, reject) => {
    const fail = () => reject(new Error(`${service.name} was stopped before it was ready`));
    if (stopped?.aborted) fail();
    stopped?.addEventListener('abort', fail, { once: true });
  });
  try {
    return await Promise.race([becomeReady(abandoned.signal).then(() => null), service.exited, isStopped]);
  } catch (error) {
    await service.stop(UNREADY_GRACE_MS);
    throw error;
  } finally {
    abandoned.abort();
  }
}

/** A larger log is rotated; looked at this often. */
const LOG_LIMIT = { bytes: 10_000_000, everyMs: 10_000 };

/**
 * Starts a service that appends to a log file, and keeps one earlier file: every client of a store can make it log.
 * @template {ServiceProcess} S
 * @param {string} file
 * @param {(fd: number) => S} start passes the descriptor on to a process; it is closed here afterwards
 */
export function withLogFile(file, start, { bytes, everyMs } = LOG_LIMIT) {
  if (isLarger(file, bytes)) renameSync(file, `${file}.1`);
  const fd = openSync(file, 'a', 0o600);
  try {
    const service = start(fd);
    const ended = new AbortController();
    void service.exited.then(() => ended.abort());
    void rotate(file, { bytes, everyMs, signal: ended.signal }).catch(() => {});
    return service;
  } finally {
    closeSync(fd);
  }
}

/** @param {string} file @param {number} bytes */
const isLarger = (file, bytes) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > bytes;

/**
 * Keeps the log of a running service small. The service has opened the file and appends to it, so it cannot be renamed.
 * @param {string} file
 * @param {{ bytes: number, everyMs: number, signal: AbortSignal }} options
 */
async function rotate(file, { bytes, everyMs, signal }) {
  for (;;) {
    await sleep(everyMs, undefined, { signal, ref: false });
    if (!isLarger(file, bytes)) continue;
    // a full disk needs the space
    await copyFile(file, `${file}.1`).catch(() => {});
    await truncate(file);
  }
}

const FULL_BYTES = 16_000_000;

/**
 * Why a service did not start: the end of its log, and a line with the reason.
 * @param {string} title
 * @param {Exit} exit
 * @param {string} logFile
 */
export function notStarted(title, exit, logFile) {
  const { bavail, bsize } = statfsSync(dirname(logFile));
  // then the log ends with an earlier failure
  const reason = bavail * bsize < FULL_BYTES ? `: the disk of ${dirname(logFile)} is full` : '';
  return new ExplainedError(`${tailOf(logFile)}\n\n${title} did not start (${describeExit(exit)})${reason}; its log is ${logFile}.`);
}

/** @param {string} file */
function tailOf(file, lines = 15) {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}

/**
 * @param {Exit} exit
 * @returns {string} "exit code 1", "SIGKILL", "spawn java ENOENT"
 */
export function describeExit({ code, signal, error }) {
  return error?.message ?? signal ?? `exit code ${code}`;
}
