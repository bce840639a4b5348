import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/**
 * CPU time that processes and their descendants have used so far, in ms (Linux).
 *
 * @param {(number | undefined)[]} pids
 */
export function cpuMs(pids) {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // the name in brackets may hold anything: what counts begins behind it
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return [{ pid: Number(name), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }];
      } catch {
        return [];
      }
    });
  const counted = new Set(pids);
  for (let size = -1; size !== counted.size;) {
    size = counted.size;
    for (const { pid, parent } of processes) if (counted.has(parent)) counted.add(pid);
  }
  return processes.reduce((sum, { pid, ticks }) => sum + (counted.has(pid) ? (ticks * 1000) / TICKS_PER_SECOND : 0), 0);
}
