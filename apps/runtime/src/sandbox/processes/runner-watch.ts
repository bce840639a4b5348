import { MainThreadClock, type MainThreadTimes } from '#observability';
import { mostOpenFiles } from '../jail/command-line.js';
import { openFiles, processUsage, TemporaryFolder, type ProcessUsage } from '../jail/process-usage.js';
import { ProcessPriority } from '../jail/process-priority.js';
import { killProcess } from '../jail/run-in-jail.js';
import { blocked, idle, type RunnerEnd, usedCpu } from './runner-end.js';
import type { SandboxLimits } from '../sandbox-config.js';

const tickMs = 100;
const lateMs = 1000;
const pingMs = 250;
const unresponsiveMs = 1000;
const idleTickMs = 1000;
const idleCpuMs = 500;

/** The usage of one run. The CPU time at its start is read at the first tick, because most runs have ended by then. */
interface Account {
  cpuAtStart: number | null;
  mainAtStart: MainThreadTimes | null;
  /** The start of its idle time; null: it is not idle */
  idleFrom: { at: number; busy: number } | null;
  idleMs: number;
  /** For which this process did not run, and perhaps nothing else on the machine */
  stillMs: number;
}

/**
 * Watches one process from outside: by its usage as the kernel reports it, and by its replies to pings. A process may lie, and code in an endless loop
 * can forge a reply, so CPU, memory and wall-clock time have separate limits.
 */
export class RunnerWatch {
  idleSince = performance.now();
  private readonly accounts = new Map<string, Account>();
  private readonly clock: MainThreadClock;
  private readonly folder: TemporaryFolder;
  readonly priority: ProcessPriority;
  private ticker: NodeJS.Timeout | undefined;
  private tickedAt = 0;
  private lastPing = 0;
  private repliedAt = performance.now();
  /** CPU time at its last reply; null until the next tick reads it */
  private cpuAtReply: number | null = null;
  /** How long it had waited for a CPU at its last reply */
  private waitedAtReply: number | null = null;
  private idleCpu: number | null = null;

  constructor(
    private readonly pid: number,
    private readonly limits: SandboxLimits,
    private readonly ping: (n: number) => void,
    private readonly stop: (end: RunnerEnd) => void,
  ) {
    this.clock = new MainThreadClock(pid);
    this.folder = new TemporaryFolder(pid);
    this.priority = new ProcessPriority(pid);
  }

  /** Whether it has not replied for a while. A run that ends now may not have run at all. */
  get unresponsive(): boolean {
    return performance.now() - this.repliedAt > unresponsiveMs;
  }

  /**
   * A run or an inspection begins.
   * @param idleMs how long it may be idle: its main thread neither runs nor waits for a CPU
   */
  enter(id: string, idleMs = Infinity): void {
    const usage = this.priority.isDue(performance.now()) ? this.usage() : null;
    if (usage) this.priority.note(usage.cpuMs, performance.now());
    if (this.accounts.size === 0) {
      this.noteReply();
      this.tickedAt = performance.now();
      this.ticker = setInterval(() => this.tick(), tickMs);
    }
    this.accounts.set(id, { cpuAtStart: null, mainAtStart: this.clock.read(), idleFrom: null, idleMs, stillMs: 0 });
  }

  /** A run or an inspection has ended. @returns its CPU time in ms, shared among those that overlap */
  leave(id: string): number {
    const account = this.accounts.get(id);
    const share = this.accounts.size;
    this.accounts.delete(id);
    if (this.accounts.size === 0) {
      clearInterval(this.ticker);
      this.idleSince = performance.now();
      this.idleCpu = null;
    }
    const now = this.clock.read();
    if (!account || account.mainAtStart === null || now === null) return 0;
    return (now.ran - account.mainAtStart.ran) / share;
  }

  /** For how long the machine stood still during the run, or this process was too busy to run for a while: none of that is the fault of the run. */
  stillMs(id: string): number {
    return (this.accounts.get(id)?.stillMs ?? 0) + this.missedMs;
  }

  /** Resident memory, in MB; 0 if the process has ended. */
  get rssMb(): number {
    return this.usage()?.rssMb ?? 0;
  }

  /** Whether half of the files are open that it may open, connections included: code has not closed them, and the next runs would find none left. */
  get leaksFiles(): boolean {
    return openFiles(this.pid) > mostOpenFiles / 2;
  }

  pong(n: number): void {
    if (n === this.lastPing) this.noteReply();
  }

  /** Called periodically: code that an ended run left running must not use CPU or memory until the process is ended for being idle. */
  checkIdle(): void {
    if (this.accounts.size > 0 || performance.now() - this.idleSince < idleTickMs) return;
    const usage = this.usage();
    if (!usage) return;
    this.priority.note(usage.cpuMs, performance.now());
    const burnt = usage.cpuMs - (this.idleCpu ?? usage.cpuMs);
    this.idleCpu = usage.cpuMs;
    if (burnt > idleCpuMs) this.stop({ status: 'killed', code: 'CPU', message: 'it used CPU between runs' });
    else if (usage.rssMb > this.limits.memoryMb)
      this.stop({ status: 'memory', code: 'MEMORY', message: 'it used too much memory between runs' });
    else this.checkFiles();
  }

  /** Stops the ticks. The clock stays readable for the runs that end with the process. */
  halt(): void {
    clearInterval(this.ticker);
  }

  close(): void {
    this.halt();
    this.clock.close();
  }

  /** How long ago the last tick was; 0 if it was recent. */
  private get missedMs(): number {
    const ms = performance.now() - this.tickedAt;
    return ms > lateMs ? ms : 0;
  }

  /** A process without a main thread is killed: Node never ends that alone. If it is about to end, this changes nothing. */
  private usage(): ProcessUsage | null {
    const usage = processUsage(this.pid);
    if (usage && !usage.hasMainThread) killProcess(this.pid);
    return usage;
  }

  private noteReply(): void {
    this.repliedAt = performance.now();
    this.cpuAtReply = null;
    this.waitedAtReply = null;
  }

  private tick(): void {
    const { limits } = this;
    const now = performance.now();
    const { missedMs } = this;
    this.tickedAt = now;
    // The parent did not run for a while (the machine slept, or the parent was busy), so replies may be unread
    if (missedMs > 0) {
      for (const account of this.accounts.values()) {
        account.idleFrom = null;
        account.stillMs += missedMs;
      }
      return this.noteReply();
    }
    const usage = this.usage();
    if (usage) {
      this.priority.note(usage.cpuMs, now);
      if (usage.rssMb > limits.memoryMb)
        return this.stop({ status: 'memory', code: 'MEMORY', message: `The code needed more than ${limits.memoryMb} MB of memory` });
      if (this.checkFiles()) return;
      for (const account of this.accounts.values()) {
        account.cpuAtStart ??= usage.cpuMs;
        if ((usage.cpuMs - account.cpuAtStart) / this.accounts.size > limits.cpuMs) return this.stop(usedCpu(limits.cpuMs));
      }
      this.cpuAtReply ??= usage.cpuMs;
    }
    const main = this.clock.read();
    if (main) {
      this.waitedAtReply ??= main.waited;
      for (const account of this.accounts.values()) if (this.isIdle(account, now, main)) return this.stop(idle(account.idleMs));
    }
    // Silence is measured in the CPU time of the process, so that a busy machine does not look like an endless loop. A thread that sleeps uses none
    const silentCpu = usage && this.cpuAtReply !== null ? usage.cpuMs - this.cpuAtReply : 0;
    const waited = main && this.waitedAtReply !== null ? main.waited - this.waitedAtReply : 0;
    if (silentCpu > limits.silenceCpuMs) return this.stop(blocked(limits.silenceCpuMs));
    // or the process is frozen
    if (now - this.repliedAt - waited > 4 * limits.silenceCpuMs)
      return this.stop({ ...blocked(limits.silenceCpuMs), isOfRunningCode: false });
    if (now - this.lastPing > pingMs) {
      this.lastPing = Math.round(now);
      this.ping(this.lastPing);
    }
  }

  /** @returns whether it has too many temporary files, and was stopped */
  private checkFiles(): boolean {
    const { temporaryFiles } = this.limits;
    if (this.folder.files() <= temporaryFiles) return false;
    this.stop({ status: 'killed', code: 'FILES', message: `The code made more than ${temporaryFiles} temporary files` });
    return true;
  }

  private isIdle(account: Account, now: number, { ran, waited }: MainThreadTimes): boolean {
    account.idleFrom ??= { at: now, busy: ran + waited };
    return now - account.idleFrom.at - (ran + waited - account.idleFrom.busy) > account.idleMs;
  }
}
