import { FairSlots, Slots } from '#limits';
import { eachSecond } from '#messaging';
import { counter } from '#observability';
import { closed, retired, type RunnerEnd, shortOfMemory } from './runner-end.js';
import type { Attempt } from './runner-process.js';
import { type RunJob, SandboxUnavailable } from '../sandbox.js';
import type { SandboxConfig, SandboxLimits } from '../sandbox-config.js';

const startFailures = counter('sandbox_start_failures_total', 'Processes for components that could not be started.');

/** A process that a run waits for does not preload libraries, which its component may not need. */
export type Purpose = 'to wait' | 'to run at once';

/** The part of `RunnerProcess` that the pool uses. */
export interface PooledProcess {
  readonly ready: Promise<void>;
  readonly ended: Promise<RunnerEnd>;
  readonly alive: boolean;
  readonly retiring: boolean;
  readonly running: number;
  readonly runs: number;
  /** The components that it has loaded, each for each of its sources and their values. */
  readonly modules: ReadonlySet<string>;
  /** The code of these modules together, in characters. */
  readonly codeLength: number;
  /** The sources that it has run, or runs. */
  readonly sources: ReadonlySet<string>;
  /** How many of its last runs have failed, one after another. */
  readonly failedInRow: number;
  readonly startedAt: number;
  readonly idleSince: number;
  readonly isHeavy: boolean;
  readonly rssMb: number;
  /** The bytes that this service holds in memory: the output of its runs in progress, and the beginning of a frame that has not arrived completely. */
  readonly outputBytes: number;
  expectHeavy(): void;
  run(job: RunJob): Promise<Attempt>;
  retire(): void;
  stop(end: RunnerEnd): void;
  checkIdle(): void;
}

type Sizes = 'blanks' | 'maxProcesses' | 'maxStarting' | 'runsPerProcess';
type Ages = 'idleMs' | 'maxRuns' | 'maxModules' | 'maxCodeLength' | 'maxAgeMs' | 'doubtfulAgeMs' | 'outdatedAgeMs';

export interface PoolSettings extends Pick<SandboxConfig, Sizes | Ages>, Pick<SandboxLimits, 'memoryMb' | 'heldOutputBytes'> {
  /** The memory that is left for all processes, in MB. */
  freeMb(): number;
}

/** The processes of one tenant: an account, or a source if each source has separate processes. */
interface Tenant<P> {
  process: P | null;
  /** When it got this process, in ms. */
  since: number;
  /** The process has run code that was deleted or changed. */
  isOutdated: boolean;
  /** Runs that arrive together start one process */
  starting: Promise<P> | null;
  places: Slots;
  capacity: number;
  runs: number;
}

const MB = 1 << 20;
/** After this many failed runs in a row, the process may be the cause. */
const manyFailures = 3;
const mostRunsPerProcess = 32;
const refillMs = 50;
/** How often the memory is looked at while little is left: a process can fill it in less than a second. */
const memoryMs = 100;
/** While less is left than this many processes may use. */
const scarceProcesses = 4;
/** For this long after one was needed, all blank processes are kept ready. */
const busyMs = 60_000;
/** For this long after a run, one is kept ready, also for a timer of an hour. Each needs 30 MB: a system that runs nothing keeps none. */
const usedMs = 65 * 60_000;
/** Processes of one account being started at a time, so that another account never waits for all of them. */
const mostStartingPerAccount = 2;
/** The account of the blank processes. */
const nobody = '';
/** How long it is remembered that a tenant's process was computing when it ended: those that replace it have a low priority from the beginning. */
const heavyMs = 60_000;

/**
 * Assigns processes to runs. A process belongs to its first tenant until it ends, because nothing can reliably clean it for another one. Blank processes
 * with the usual libraries loaded are ready for tenants that have no process.
 */
export class RunnerPool<P extends PooledProcess> {
  private readonly tenants = new Map<string, Tenant<P>>();
  /** Until when, by tenant. */
  private readonly heavyUntil = new Map<string, number>();
  private readonly blanks: P[] = [];
  private readonly all = new Set<P>();
  /** Other programs in progress, in the order of their starts. */
  private readonly others = new Set<AbortController>();
  /** Processes that do not exist yet */
  private readonly launches = new Set<Promise<P>>();
  /** Accounts take turns, and only those whose turn has come wait for one of the processes. */
  private readonly starts: FairSlots;
  private readonly processSlots: Slots;
  private readonly stopSweeping: () => void;
  private refillTimer: NodeJS.Timeout | undefined;
  private startingBlanks = 0;
  /** When a process was last needed, for a run or an inspection, in ms. */
  private neededAt = -Infinity;
  /** When the last run was requested, in ms. */
  private ranAt = -Infinity;
  /** The number of processes being started that runs wait for */
  private awaited = 0;
  /** Runs while memory is scarce. */
  private memoryTimer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(
    private readonly launch: (purpose: Purpose) => Promise<P>,
    private readonly settings: PoolSettings,
  ) {
    this.starts = new FairSlots({
      atATime: settings.maxStarting,
      atATimePerAccount: mostStartingPerAccount,
      waitingPerAccount: Infinity,
      waiting: Infinity,
    });
    this.processSlots = new Slots(settings.maxProcesses);
    this.stopSweeping = eachSecond(() => this.sweep());
  }

  get processes(): number {
    return this.all.size;
  }

  get running(): number {
    return [...this.tenants.values()].reduce((sum, { runs, places }) => sum + runs - places.waiting, 0);
  }

  get waiting(): number {
    return [...this.tenants.values()].reduce((sum, { places }) => sum + places.waiting, 0);
  }

  /** Runs the work in the tenant's process, or in a new one for the tenant. @throws SandboxUnavailable */
  async run(tenantKey: string, job: RunJob): Promise<Attempt> {
    const tenant = this.tenant(tenantKey, job.concurrency ?? 1);
    this.ranAt = performance.now();
    tenant.runs++;
    try {
      await tenant.places.take();
      try {
        const process = await this.processOf(tenantKey, tenant, job.accountId);
        const attempt = await process.run(job);
        if (this.isUsedUp(process)) process.retire();
        // the last run of the source as it was: it is requested by the change for which `forget` was called
        if (job.method === 'deactivate') this.forget(tenantKey, job.sourceId);
        return attempt;
      } finally {
        tenant.places.give();
      }
    } finally {
      tenant.runs--;
      if (tenant.runs === 0 && !tenant.process?.alive) this.tenants.delete(tenantKey);
      if (this.processSlots.waiting > 0) this.evict();
    }
  }

  /**
   * Retires the process of the tenant if it has ever run the source: what its code left running, or has changed for all, cannot be found otherwise. A new
   * process costs 0.3 s of CPU, so a process that the tenant got a few seconds ago is retired later: many sources may change one after another.
   */
  forget(tenantKey: string, sourceId: string): void {
    const tenant = this.tenants.get(tenantKey);
    if (!tenant?.process?.sources.has(sourceId)) return;
    tenant.isOutdated = true;
    this.retireOutdated(tenant);
  }

  private retireOutdated({ process, since, isOutdated }: Tenant<P>): void {
    if (isOutdated && performance.now() - since >= this.settings.outdatedAgeMs) process?.retire();
  }

  private isUsedUp({ runs, modules, codeLength, startedAt, failedInRow }: P): boolean {
    const { maxRuns, maxModules, maxCodeLength, maxAgeMs, doubtfulAgeMs } = this.settings;
    const age = performance.now() - startedAt;
    if (runs >= maxRuns || modules.size >= maxModules || codeLength >= maxCodeLength || age >= maxAgeMs) return true;
    return failedInRow >= manyFailures && age >= doubtfulAgeMs;
  }

  /** Runs the work in a new process that runs nothing else, when it is the account's turn. @throws SandboxUnavailable */
  async alone<T>(accountId: string, work: (process: P) => Promise<T>): Promise<T> {
    const process = await this.take(accountId);
    try {
      return await work(process);
    } finally {
      process.stop(retired);
    }
  }

  /**
   * Runs another program, such as npm, when there is memory for it. The signal ends it before a process of components when little is left.
   * @throws SandboxUnavailable then
   */
  async withMemory<T>(until: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    await this.memoryForOne(until);
    this.checkOpen();
    const end = new AbortController();
    this.others.add(end);
    this.watchMemory();
    try {
      const result = await work(end.signal);
      if (end.signal.aborted) throw new SandboxUnavailable('Sluice was short of memory; try again in a moment');
      return result;
    } finally {
      this.others.delete(end);
    }
  }

  /** Starts the blank processes that are missing from this many. @throws SandboxUnavailable */
  async fill(wanted: number): Promise<void> {
    const starts: Promise<void>[] = [];
    while (this.lacksBlank(wanted)) {
      this.startingBlanks++;
      const start = this.start(nobody, 'to wait').then((process) => void this.blanks.push(process));
      starts.push(start.finally(() => this.startingBlanks--));
    }
    await Promise.all(starts);
  }

  private lacksBlank(wanted: number): boolean {
    const { maxProcesses } = this.settings;
    return !this.closed && this.blanks.length + this.startingBlanks < wanted && this.all.size + this.startingBlanks < maxProcesses;
  }

  /** The number of blank processes. */
  private get wanted(): number {
    const { blanks } = this.settings;
    if (this.memoryTimer) return 0;
    const now = performance.now();
    if (now - this.neededAt < busyMs) return blanks;
    return now - this.ranAt < usedMs ? Math.min(blanks, 1) : 0;
  }

  /** A failure is reported when a run needs a process, to a caller that can act on it. */
  private refill(): void {
    this.fill(this.wanted).catch(() => {});
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stopSweeping();
    clearTimeout(this.refillTimer);
    clearInterval(this.memoryTimer);
    for (const process of this.all) process.stop(closed);
    // These stop as soon as they exist
    await Promise.allSettled(this.launches);
    await Promise.all([...this.all].map((process) => process.ended));
  }

  private tenant(key: string, concurrency: number): Tenant<P> {
    let tenant = this.tenants.get(key);
    if (!tenant) {
      tenant = {
        process: null,
        since: 0,
        isOutdated: false,
        starting: null,
        places: new Slots(this.settings.runsPerProcess),
        capacity: this.settings.runsPerProcess,
        runs: 0,
      };
      this.tenants.set(key, tenant);
    }
    // It comes from the component's code
    const capacity = Math.min(concurrency, mostRunsPerProcess);
    if (capacity > tenant.capacity) {
      tenant.places.grow(capacity - tenant.capacity);
      tenant.capacity = capacity;
    }
    return tenant;
  }

  private async processOf(key: string, tenant: Tenant<P>, accountId: string): Promise<P> {
    const { process } = tenant;
    if (process?.alive && !process.retiring) return process;
    tenant.starting ??= this.takeFor(key, accountId).finally(() => (tenant.starting = null));
    const taken = await tenant.starting;
    if (tenant.process !== taken) {
      tenant.process = taken;
      tenant.since = performance.now();
      tenant.isOutdated = false;
    }
    return taken;
  }

  private async takeFor(key: string, accountId: string): Promise<P> {
    const process = await this.take(accountId);
    if (this.heavyUntil.has(key)) process.expectHeavy();
    void process.ended.then(() => process.isHeavy && this.heavyUntil.set(key, performance.now() + heavyMs));
    return process;
  }

  private async take(accountId: string): Promise<P> {
    this.checkOpen();
    this.neededAt = performance.now();
    // Not at once, because the requested process comes first
    this.refillTimer ??= setTimeout(() => this.refillWhenQuiet(), refillMs);
    for (let blank = this.blanks.shift(); blank; blank = this.blanks.shift()) if (blank.alive) return blank;
    this.awaited++;
    return this.start(accountId, 'to run at once').finally(() => this.awaited--);
  }

  private refillWhenQuiet(): void {
    this.refillTimer = this.awaited > 0 ? setTimeout(() => this.refillWhenQuiet(), refillMs) : undefined;
    if (this.awaited === 0) this.refill();
  }

  private start(accountId: string, purpose: Purpose): Promise<P> {
    return this.starts.use(accountId, Infinity, () => this.startNow(purpose));
  }

  private async startNow(purpose: Purpose): Promise<P> {
    if (this.all.size >= this.settings.maxProcesses) this.evict();
    await this.processSlots.take();
    await this.memoryForOne();
    const launch = this.launched(purpose);
    this.launches.add(launch);
    try {
      const process = await launch;
      await process.ready;
      return process;
    } catch (error) {
      if (!this.closed) startFailures.inc();
      throw error;
    } finally {
      this.launches.delete(launch);
    }
  }

  private async launched(purpose: Purpose): Promise<P> {
    try {
      this.checkOpen();
      const process = await this.launch(purpose);
      if (this.closed) process.stop(closed);
      this.all.add(process);
      void process.ended.then(() => {
        this.all.delete(process);
        this.processSlots.give();
      });
      return process;
    } catch (error) {
      this.processSlots.give();
      throw new SandboxUnavailable((error as Error).message);
    }
  }

  private checkOpen(): void {
    if (this.closed) throw new SandboxUnavailable('The sandbox is closed');
  }

  /** Waits while one more process could need more memory than is left. A single program is always possible. */
  private async memoryForOne(until = Infinity): Promise<void> {
    const { memoryMb, freeMb } = this.settings;
    while (this.programs > 0 && !this.closed && freeMb() < memoryMb && Date.now() < until) {
      this.evict();
      await new Promise((resolve) => setTimeout(resolve, memoryMs));
    }
  }

  private get programs(): number {
    return this.all.size + this.others.size;
  }

  /**
   * Ends processes while little memory is left: idle ones first, then the newest of the other programs, then the one that uses the most, whose runs are
   * repeated when there is more. Otherwise the system would choose, perhaps all processes of this service.
   */
  private checkMemory(): void {
    const { memoryMb, freeMb } = this.settings;
    if (freeMb() >= memoryMb / 2 || this.evict()) return;
    const newest = [...this.others].at(-1);
    if (newest && this.programs > 1) {
      this.others.delete(newest);
      return newest.abort('memory');
    }
    const [largest, another] = [...this.all].filter(({ alive }) => alive).sort((a, b) => b.rssMb - a.rssMb);
    // a single one is not the cause, and the machine may be small
    if (another) largest?.stop(shortOfMemory(largest.rssMb, 'used the most'));
  }

  /** Looks at the memory more often while it is scarce. */
  private watchMemory(): void {
    const isScarce = this.programs > 0 && this.settings.freeMb() < scarceProcesses * this.settings.memoryMb;
    if (isScarce) this.memoryTimer ??= setInterval(() => this.checkMemory(), memoryMs);
    if (isScarce) return;
    clearInterval(this.memoryTimer);
    this.memoryTimer = undefined;
  }

  /** Ends the processes that have written the most, until the rest is within the limit. Their runs are repeated, each in a process of its account. */
  private checkOutput(): void {
    const writers = [...this.all].filter(({ alive }) => alive).sort((a, b) => b.outputBytes - a.outputBytes);
    let held = writers.reduce((sum, { outputBytes }) => sum + outputBytes, 0);
    for (const writer of writers) {
      if (held <= this.settings.heldOutputBytes) return;
      held -= writer.outputBytes;
      writer.stop(shortOfMemory(writer.outputBytes / MB, 'wrote the most output'));
    }
  }

  /** Ends the process that has been idle longest. A process that has just been assigned to a run is not idle. @returns whether there was one */
  private evict(): boolean {
    const kept = [...this.tenants.values()].flatMap(({ process, runs }) => (process && runs === 0 ? [process] : []));
    const idle = [...this.blanks, ...kept].filter((process) => process.alive);
    const oldest = idle.sort((a, b) => a.idleSince - b.idleSince)[0];
    oldest?.retire();
    return oldest !== undefined;
  }

  private sweep(): void {
    const now = performance.now();
    this.watchMemory();
    this.checkOutput();
    for (const process of this.all) process.checkIdle();
    for (const [key, until] of this.heavyUntil) if (until < now) this.heavyUntil.delete(key);
    for (const [key, tenant] of this.tenants) {
      const { process, runs } = tenant;
      this.retireOutdated(tenant);
      if (runs > 0) continue;
      if (process?.alive && process.running === 0 && now - process.idleSince > this.settings.idleMs) process.retire();
      if (!process?.alive) this.tenants.delete(key);
    }
    for (let i = this.blanks.length - 1; i >= 0; i--) if (!this.blanks[i]!.alive) this.blanks.splice(i, 1);
    if (this.blanks.length > this.wanted) this.blanks.pop()?.retire();
    if (this.awaited === 0) this.refill();
  }
}
