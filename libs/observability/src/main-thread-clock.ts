import { closeSync, openSync, readSync } from 'node:fs';

export interface MainThreadTimes {
  /** On a CPU, in ms */
  ran: number;
  /** Ready to run while others had the CPUs, in ms */
  waited: number;
}

/**
 * The CPU time of a process's main thread, which runs JavaScript, exact to the ns. It is read at both ends of each run, so the file stays open:
 * opening it would be most of the cost.
 */
export class MainThreadClock {
  private readonly descriptor: number | null;
  private readonly buffer = Buffer.alloc(64);

  constructor(pid: number) {
    this.descriptor = openQuietly(`/proc/${pid}/schedstat`);
  }

  /** null if the process has ended or the system does not report it */
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
