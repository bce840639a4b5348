import { allProcesses, readProcess, withDescendants } from '../../scripts/pid-files/process-tree.mjs';

const TICKS_PER_SECOND = 100;

/**
 * CPU time that processes and their descendants have used so far, in ms (Linux).
 *
 * @param {(number | undefined)[]} pids
 */
export function cpuMs(pids) {
  const processes = allProcesses();
  const counted = withDescendants(pids, processes);
  return processes.reduce((sum, { pid, ticks }) => sum + (counted.has(pid) ? (ticks * 1000) / TICKS_PER_SECOND : 0), 0);
}

/**
 * CPU time that each of these processes uses from now on, with its descendants.
 *
 * @param {Record<string, number | undefined>} pids by name
 * @returns {() => Record<string, number>} so far, in ms, by name
 */
export function cpuByProcess(pids) {
  const read = () => Object.entries(pids).map(([name, pid]) => /** @type {const} */ ([name, cpuMs([pid])]));
  const before = Object.fromEntries(read());
  return () => Object.fromEntries(read().map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

/**
 * CPU seconds that a process has used so far, without its descendants that are alive; null if there is none.
 * @param {number | undefined} pid
 */
export function cpuSeconds(pid) {
  const [found] = pid === undefined ? [] : readProcess(pid);
  return found ? found.ticks / TICKS_PER_SECOND : null;
}
