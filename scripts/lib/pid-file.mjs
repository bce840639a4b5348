import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isStillRunning, processIdentity, stopProcess } from './process-identity.mjs';

/**
 * Notes which process runs, so that a later start finds it if this one is killed.
 * @param {string} file
 * @param {number} pid
 */
export function writePidFile(file, pid) {
  // Written beside and renamed: a reader never sees half of it.
  const half = `${file}.${process.pid}`;
  writeFileSync(half, JSON.stringify({ pid, identity: processIdentity(pid) }));
  renameSync(half, file);
}

/**
 * @param {string} file
 * @returns {{ pid: number, identity: string } | null} the process if it still runs and is really the one that was noted
 */
export function readPidFile(file) {
  try {
    const { pid, identity } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && isStillRunning(pid, identity) ? { pid, identity } : null;
  } catch {
    return null;
  }
}

/** @param {string} file */
export const removePidFile = (file) => rmSync(file, { force: true });

/**
 * Stops what a killed launcher left running.
 * @param {string} file
 * @param {{ signal?: NodeJS.Signals, graceMs?: number }} [options]
 * @returns {Promise<boolean>} whether there was something to stop
 */
export async function stopLeftover(file, options) {
  const leftover = readPidFile(file);
  if (leftover) await stopProcess(leftover.pid, leftover.identity, options);
  removePidFile(file);
  return leftover !== null;
}
