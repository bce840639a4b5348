import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

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

export interface MainThreadTimes {
  /** On a CPU, in ms */
  ran: number;
  /** Ready to run while others had the CPUs, in ms */
  waited: number;
}

/**
 * What a process's main thread, where JavaScript runs, has had of the CPUs, exact to the ns. Asked at both ends of each run, so the file stays
 * open: opening it would be most of the cost.
 */
export class MainThreadClock {
  private readonly descriptor: number | null;
  private readonly buffer = Buffer.alloc(64);

  constructor(pid: number) {
    this.descriptor = openQuietly(`/proc/${pid}/schedstat`);
  }

  /** null when the process is gone or the system does not say */
  read(): MainThreadTimes | null {
    if (this.descriptor === null) return null;
    try {
      const bytes = readSync(this.descriptor, this.buffer, 0, this.buffer.length, 0);
      const [ran, waited] = this.buffer.toString('latin1', 0, bytes).split(' ');
      return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
    } catch {
      return null;
    }
  }

  close(): void {
    if (this.descriptor !== null) closeSync(this.descriptor);
  }
}

function openQuietly(file: string): number | null {
  try {
    return openSync(file, 'r');
  } catch {
    return null;
  }
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
