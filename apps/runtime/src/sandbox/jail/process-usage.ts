import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';

export interface ProcessUsage {
  /** CPU of all threads, in steps of 10 ms */
  cpuMs: number;
  rssMb: number;
  /** Whether its main thread runs. Where it has ended before others, the kernel shows neither the memory nor the files of the process */
  hasMainThread: boolean;
}

const clockTicksPerSecond = 100;
const pageBytes = 4096;
// linux/magic.h
const tmpfs = 0x01021994;

/** The fields that the kernel reports of a process, from its state on; null if it has ended or the system has no /proc. */
export function processFields(pid: number | string): string[] | null {
  const stat = readKernelFile(`/proc/${pid}/stat`);
  // Before them is the command, which the process chooses: it may contain spaces and brackets
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** The usage of a process as the kernel reports it, because the process itself could lie; null if it has ended or the system has no /proc. */
export function processUsage(pid: number): ProcessUsage | null {
  const fields = processFields(pid);
  if (!fields) return null;
  return {
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / clockTicksPerSecond,
    rssMb: (Number(fields[21]) * pageBytes) / 1048576,
    hasMainThread: fields[0] !== 'Z',
  };
}

/** How many files and connections a process has open; 0 if it has ended or cannot be seen. */
export function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/**
 * The temporary folder that a jail has made for a process. Its size is limited, but each file and folder in it also takes about a kilobyte of the
 * kernel's memory, however small it is.
 */
export class TemporaryFolder {
  /** null: the process has the root directory of this machine, and no folder to write to */
  private readonly path: string | null;

  constructor(pid: number) {
    this.path = isOtherRoot(`/proc/${pid}/root`) ? `/proc/${pid}/root/tmp` : null;
  }

  /** How many files and folders it contains; 0 if the process has ended or cannot be seen. */
  files(): number {
    if (this.path === null) return 0;
    try {
      const { type, files, ffree } = statfsSync(this.path);
      return type === tmpfs ? files - ffree : 0;
    } catch {
      return 0;
    }
  }
}

function isOtherRoot(root: string): boolean {
  try {
    const [own, other] = [statSync('/'), statSync(root)];
    return own.dev !== other.dev || own.ino !== other.ino;
  } catch {
    return false;
  }
}

/** A jail is a chain of programs, each the only child of the previous one. The last one is the jailed program. */
export function lastDescendant(pid: number): number {
  const children = readKernelFile(`/proc/${pid}/task/${pid}/children`)?.trim();
  return children ? lastDescendant(Number(children.split(' ')[0])) : pid;
}

/** The text of a file of the kernel; null if it does not exist. */
export function readKernelFile(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return null;
  }
}
