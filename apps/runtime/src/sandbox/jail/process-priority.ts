import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * How much lower the priority of a process of components is than the runtime's: of an ordinary one, and of one that has used most of a CPU for a while.
 * Only root can raise a priority again: where the runtime is an ordinary user, what has become low stays so until the process ends, so it is not as low.
 */
export const niceness = { ordinary: 5, heavy: process.getuid?.() === 0 ? 19 : 10 } as const;

const lowest = 19;
const heavyShare = 0.6;
const lightShare = 0.2;
/** How far back a measurement counts, in ms. */
const memory = 500;
/** A shorter time cannot be measured: the kernel counts in steps of 10 ms. */
const shortest = 90;

/**
 * The priority of one process of components, by what it uses: an account that computes a lot must not delay the services, nor the short runs of other
 * accounts. On an idle machine it makes no difference.
 */
export class ProcessPriority {
  private share = 0;
  private measured: { at: number; cpuMs: number } | null = null;
  private nice = 0;

  /** @param apply returns whether it has worked */
  constructor(
    private readonly pid: number,
    private readonly apply: (pid: number, nice: number) => boolean = renice,
  ) {
    this.become(niceness.ordinary);
  }

  /** Whether it has used most of a CPU for a while. */
  get isHeavy(): boolean {
    return this.nice === niceness.heavy;
  }

  /** It replaces a process that was heavy: it is one from the beginning, until it has used less for a while. */
  expectHeavy(): void {
    this.share = 1;
    this.become(niceness.heavy);
  }

  /** Whether enough time has passed since the last measurement. */
  isDue(at: number): boolean {
    return this.measured === null || at - this.measured.at >= shortest;
  }

  /** Called sometimes while it runs code; the time between its runs counts as well. @param cpuMs its CPU time so far @param at a time in ms */
  note(cpuMs: number, at: number): void {
    if (!this.isDue(at)) return;
    const before = this.measured;
    this.measured = { at, cpuMs };
    if (!before) return;
    const ms = at - before.at;
    this.share += (1 - Math.exp(-ms / memory)) * ((cpuMs - before.cpuMs) / ms - this.share);
    if (this.share > heavyShare) this.become(niceness.heavy);
    else if (this.share < lightShare) this.become(niceness.ordinary);
  }

  /** A failure is followed by another attempt at the next measurement. */
  private become(nice: number): void {
    if (this.nice !== nice && this.apply(this.pid, nice)) this.nice = nice;
  }
}

/** Sets the priority of all threads of a process, and of its session. Returns false if it must be tried again. */
function renice(pid: number, nice: number): boolean {
  const value = Math.min(getPriority() + nice, lowest);
  attempt(() => {
    for (const thread of readdirSync(`/proc/${pid}/task`)) attempt(() => setPriority(Number(thread), value));
  });
  return reniceSession(pid, nice);
}

/**
 * Linux may schedule the processes of a session as a group (`sched_autogroup`); then the priority of the group counts, and not that of its processes
 * beside other sessions. An ordinary user can change it ten times a second, over all sessions.
 * @returns false if it must be tried again
 */
export function reniceSession(pid: number, nice: number): boolean {
  return attempt(() => writeFileSync(`/proc/${pid}/autogroup`, String(nice)));
}

/** Whether a step has worked, or can never work. */
function attempt(step: () => void): boolean {
  try {
    step();
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EAGAIN';
  }
}
