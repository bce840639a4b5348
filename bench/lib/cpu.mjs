import { readdirSync, readFileSync } from 'node:fs';

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
 * Process ids, and those of their descendants (Linux).
 *
 * @param {(number | undefined)[]} pids
 */
export function withDescendants(pids, processes = allProcesses()) {
  const found = new Set(pids);
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const { pid, parent } of processes) if (found.has(parent)) found.add(pid);
  }
  return found;
}

/**
 * CPU seconds that processes have used so far; null if the system does not report them.
 * @param {number | string | undefined} process a process id, or the name that several processes share
 */
export function cpuSeconds(process) {
  try {
    const processes = typeof process === 'number' ? readProcess(process) : allProcesses().filter(({ name }) => name === process);
    return processes.reduce((sum, { ticks }) => sum + ticks, 0) / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

const allProcesses = () =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => readProcess(Number(pid)));

/** @param {number} pid */
function readProcess(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // the name in parentheses may contain anything: the fields begin after it
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
    // user and system time of the process and of its children that have ended
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [{ pid, name, parent: Number(fields[1]), ticks }];
  } catch {
    // it has ended meanwhile
    return [];
  }
}
