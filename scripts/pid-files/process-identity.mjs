import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcess } from './process-tree.mjs';

/**
 * Identifies a process beyond its number: numbers are reused, so a pid in a file may belong to another process by now.
 * The start time of a process never changes, whatever it executes.
 *
 * @param {number} pid
 * @returns {string | null} null if there is no such process (or only a zombie)
 */
export function processIdentity(pid) {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

/** The system whose process ids this process sees: a container has other ones than its host, so that neither finds the processes of the other by their ids. */
export function pidNamespace() {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    // macOS, and some sandboxes, have no such links
    return process.platform;
  }
}

/**
 * @param {number} pid
 * @param {string} identity the result of `processIdentity` when the process was started
 */
export const isStillRunning = (pid, identity) => processIdentity(pid) === identity;

/**
 * Stops a process that is not our child: gracefully, then by force.
 *
 * @param {number} pid
 * @param {string} identity
 * @param {{ signal?: NodeJS.Signals, graceMs?: number }} [options]
 */
export async function stopProcess(pid, identity, { signal = 'SIGTERM', graceMs = 10_000 } = {}) {
  const deadline = performance.now() + graceMs;
  sendSignal(pid, signal);
  while (isStillRunning(pid, identity)) {
    if (performance.now() > deadline) sendSignal(pid, 'SIGKILL');
    await sleep(50);
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
export function sendSignal(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}

/** @param {number} pid */
function fromProc(pid) {
  const [found] = readProcess(pid);
  if (!found || ['Z', 'X'].includes(found.state)) return null;
  try {
    // Ticks are counted from the boot of the machine: after a reboot the same count is another moment.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${found.startedAt}`;
  } catch {
    return null;
  }
}

/** @param {number} pid */
function fromPs(pid) {
  try {
    const [state, ...startedAt] = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .split(/\s+/);
    return !state || state.startsWith('Z') ? null : startedAt.join(' ');
  } catch {
    return null;
  }
}
