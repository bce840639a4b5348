import { readFileSync, rmSync, statSync } from 'node:fs';
import { writeWhole } from '../shell/whole-file.mjs';
import { isStillRunning, pidNamespace, processIdentity, stopProcess } from './process-identity.mjs';

/**
 * Writes down a running process, so that a later start finds it if this process is killed.
 * @param {string} file
 * @param {number} pid
 * @throws {ExplainedError} if the file cannot be written, for instance because the disk is full
 */
export function writePidFile(file, pid) {
  writeWhole(file, JSON.stringify({ pid, identity: processIdentity(pid), namespace: pidNamespace() }), { mode: 0o644 });
}

/**
 * @param {string} file
 * @returns {{ pid: number, identity: string } | null} the process, if it is still running and is really the recorded one
 */
export function readPidFile(file) {
  try {
    const { pid, identity } = JSON.parse(readFileSync(file, 'utf8'));
    // it has no identity if it had already exited when it was written down
    return Number.isInteger(pid) && typeof identity === 'string' && isStillRunning(pid, identity) ? { pid, identity } : null;
  } catch {
    return null;
  }
}

/**
 * A process of another PID namespace, such as that of a container, which this process cannot see: it may be running or not.
 * @param {string} file
 * @returns {{ pid: number, writtenAt: number } | null}
 */
export function readForeignPidFile(file) {
  try {
    const { pid, namespace } = JSON.parse(readFileSync(file, 'utf8'));
    // those of earlier versions have no namespace
    return Number.isInteger(pid) && ![undefined, pidNamespace()].includes(namespace) ? { pid, writtenAt: statSync(file).mtimeMs } : null;
  } catch {
    return null;
  }
}

/** @param {string} file */
export const removePidFile = (file) => rmSync(file, { force: true });

/**
 * Stops a process that a killed launcher left running.
 * @param {string} file
 * @param {{ signal?: NodeJS.Signals, graceMs?: number }} [options]
 * @returns {Promise<boolean>} whether there was one
 */
export async function stopLeftover(file, options) {
  const leftover = readPidFile(file);
  if (leftover) await stopProcess(leftover.pid, leftover.identity, options);
  removePidFile(file);
  return leftover !== null;
}
