import { readdirSync, readFileSync } from 'node:fs';

/**
 * A process of this machine. `ticks`: its CPU time and that of its children that have ended, in hundredths of a second. `startedAt`: in ticks since the
 * start of the machine.
 * @typedef {{ pid: number, name: string, parent: number, ticks: number, state: string, startedAt: string | undefined }} Process
 */

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

/** @returns {Process[]} */
export const allProcesses = () =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => readProcess(Number(pid)));

/**
 * @param {number} pid
 * @returns {Process[]} empty if there is none
 */
export function readProcess(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // the name in parentheses may contain anything: the fields begin after it
    const [state = '', parent, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
    // user and system time of the process and of its children that have ended
    const ticks = fields.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
    return [{ pid, name, parent: Number(parent), ticks, state, startedAt: fields[17] }];
  } catch {
    // it has ended meanwhile
    return [];
  }
}
