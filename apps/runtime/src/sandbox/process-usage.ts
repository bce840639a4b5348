import { readFileSync } from 'node:fs';

export interface ProcessUsage {
  /** CPU of all threads, in steps of 10 ms */
  cpuMs: number;
  rssMb: number;
}

const clockTicksPerSecond = 100;
const pageBytes = 4096;

/** What the kernel says about a process; null when it is gone or the system has no /proc. The process itself is not asked: it may lie. */
export function processUsage(pid: number): ProcessUsage | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the command, which may itself contain spaces and brackets
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / clockTicksPerSecond,
    rssMb: (Number(fields[21]) * pageBytes) / 1048576,
  };
}

/** CPU of the main thread in ms, exact to the ns: where JavaScript runs. null as above. */
export function mainThreadCpuMs(pid: number): number | null {
  const schedstat = read(`/proc/${pid}/schedstat`);
  return schedstat === null ? null : Number(schedstat.split(' ')[0]) / 1e6;
}

/** Jails are chains of programs, each the only child of the one before: the last is the one that runs. */
export function lastDescendant(pid: number): number {
  const children = read(`/proc/${pid}/task/${pid}/children`)?.trim();
  return children ? lastDescendant(Number(children.split(' ')[0])) : pid;
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return null;
  }
}
