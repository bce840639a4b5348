import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { ComponentRejected } from './component-rejected.js';
import type { Exchange } from './exchange.js';
import type { Jail } from './jail/jail.js';
import { killQuietly } from './jail/run-in-jail.js';
import { startInJail } from './jail/start-in-jail.js';
import { lastDescendant, mainThreadCpuMs, processUsage } from './process-usage.js';
import { RunInFlight, TooMuchOutput } from './run-in-flight.js';
import type { SandboxLimits } from './sandbox-limits.js';
import type { ComponentCode, ComponentDescription, RunError, RunJob, RunOutcome, RunStatus } from './sandbox.js';
import { SandboxUnavailable } from './sandbox-unavailable.js';
import { encodeFrame, FrameReader, FrameTooLarge } from './wire/frames.js';
import { ProtocolBroken, readGuestMessage } from './wire/guest-message.js';
import type { FromGuest, ToGuest } from './wire/messages.js';
import { readDescription } from './wire/read-description.js';

/** Why a process ended, and what a run says that was in it. `retired`: nobody's fault, its time was up. */
export interface End {
  status: RunStatus | 'retired';
  code: string;
  message: string;
}

/** `again`: the process ended, and it may well have been another run's doing. */
export type Attempt = { outcome: RunOutcome; again: boolean };

const blocked: End = { status: 'killed', code: 'BLOCKED', message: 'The code blocked the event loop (an endless loop?)' };

export interface RunnerSettings {
  jail: Jail;
  uid: number;
  limits: SandboxLimits;
  modules: string[];
  /** Loaded before the first component is */
  warm: string[];
  trustedCa: string | null;
  /** false: for tests that want to see what the jail alone holds back */
  hardened: boolean;
}

const startMs = 15_000;
const drainMs = 500;
const tickMs = 100;
const pingMs = 250;
const blockedMs = 1000;
const idleTickMs = 1000;
const idleCpuMs = 500;
const keptErrorBytes = 4096;
// What a process may say that belongs to no run, until it has been idle for a tick
const unaskedBytes = 1 << 20;

/**
 * One jailed process, from its start to its end.
 *
 *     starting ──ready──▶ serving ──retire()──▶ retiring ──last run done──▶ dead
 *         └───────────────────┴───── a limit, a broken frame, its own end ────▶ dead
 *
 * Everything that it says is taken as "this is what run X answers", where X must be a run that was started here. When it dies, the runs in it
 * end: with its fault if they were surely to blame, else with `again`.
 */
export class RunnerProcess {
  readonly ready: Promise<void>;
  readonly ended: Promise<End>;
  runs = 0;
  retiring = false;
  idleSince = performance.now();
  readonly hashes = new Set<string>();

  private readonly child: ChildProcess;
  private readonly channel: Socket;
  private readonly inFlight = new Map<
    string,
    { run: RunInFlight; cpuAtStart: number; mainCpuAtStart: number; wall: NodeJS.Timeout; done: (again: boolean) => void }
  >();
  private readonly inspections = new Map<
    string,
    { resolve: (description: ComponentDescription) => void; reject: (error: Error) => void }
  >();
  private end: End | null = null;
  private guilty: RunInFlight | null = null;
  private errors = '';
  private pid: number;
  private ticker: NodeJS.Timeout | undefined;
  private lastPing = 0;
  private pongAt = performance.now();
  private pongCpu = 0;
  private idleCpu = 0;
  private mainCpuAtEnd: number | null = null;
  private isGone = false;
  private unasked = 0;
  private becomeReady!: () => void;
  private failToStart!: (error: Error) => void;
  private finish!: (end: End) => void;

  constructor(
    private readonly settings: RunnerSettings,
    private readonly exchange: Exchange,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.becomeReady = resolve;
      this.failToStart = reject;
    });
    this.ready.catch(() => {});
    this.ended = new Promise((resolve) => (this.finish = resolve));

    const { jail, uid, limits } = settings;
    const command = jail.command({ kind: 'runner', exchangeDir: exchange.dir, uid, heapMb: limits.heapMb, args: [] });
    this.child = startInJail(command, 'ignore', 'pipe');
    this.pid = this.child.pid ?? 0;
    this.channel = this.child.stdio[3] as Socket;
    this.child.on('error', (error) => this.stop({ status: 'crashed', code: 'SPAWN', message: error.message }));
    this.child.on('exit', (code, signal) => {
      // What it said before it ended is still to be read; a stranger that holds the channel open must not keep us waiting for more
      if (this.end) this.gone(code, signal);
      else setTimeout(() => this.gone(code, signal), drainMs).unref();
    });
    this.child.on('close', (code, signal) => this.gone(code, signal));
    if (!this.channel) return;

    this.child.stderr!.on('data', (chunk: Buffer) => {
      if (this.errors.length < keptErrorBytes) this.errors += chunk.toString('latin1');
    });
    this.channel.on('error', () => {});
    this.receive();
    const egress = `${command.exchangePath}/${exchange.socketName}`;
    this.send({
      t: 'setup',
      limits,
      modules: settings.modules,
      trustedCa: settings.trustedCa,
      hardened: settings.hardened,
      egress,
    });
    if (settings.warm.length > 0) this.send({ t: 'warm', modules: settings.warm });
    const late = setTimeout(() => this.stop({ status: 'crashed', code: 'START', message: `it was not ready in ${startMs} ms` }), startMs);
    void this.ready.then(
      () => clearTimeout(late),
      () => clearTimeout(late),
    );
  }

  get running(): number {
    return this.inFlight.size + this.inspections.size;
  }

  get alive(): boolean {
    return this.end === null;
  }

  /** Resident memory, or 0 where the system does not say. */
  get rssMb(): number {
    return processUsage(this.pid)?.rssMb ?? 0;
  }

  /** Call it when `ready`. Never rejects. */
  async run(job: RunJob): Promise<Attempt> {
    const { limits } = this.settings;
    for (const { run } of this.inFlight.values()) run.alone = false;
    const run = new RunInFlight(randomBytes(8).toString('hex'), job, limits, this.runs === 0);
    if (!this.alive) return this.stillborn(run);
    this.runs++;
    const usage = processUsage(this.pid);
    if (this.running === 0) this.wakeUp(usage?.cpuMs ?? 0);

    const ended = new Promise<boolean>((done) => {
      const wallMs = job.wallMs ?? limits.wallMs;
      const wall = setTimeout(() => this.timeOut(run, wallMs), wallMs);
      this.inFlight.set(run.id, { run, cpuAtStart: usage?.cpuMs ?? 0, mainCpuAtStart: mainThreadCpuMs(this.pid) ?? 0, wall, done });
    });
    const { hash, code } = job.component;
    this.send({
      t: 'run',
      id: run.id,
      hash,
      code: this.hashes.has(hash) ? undefined : code,
      method: job.method,
      sourceId: job.sourceId,
      props: job.props,
      endpoint: job.endpoint,
      db: job.db,
      event: job.event,
    });
    this.hashes.add(hash);
    const again = await ended;
    return { outcome: await run.settled, again };
  }

  /** Call it when `ready`, once, and stop the process afterwards. @throws ComponentRejected */
  inspect({ hash, code }: ComponentCode): Promise<ComponentDescription> {
    const { inspectMs } = this.settings.limits;
    const id = randomBytes(8).toString('hex');
    this.wakeUp(processUsage(this.pid)?.cpuMs ?? 0);
    const late = setTimeout(
      () => this.stop({ status: 'timeout', code: 'TIMEOUT', message: `The code took longer than ${inspectMs} ms to load` }),
      inspectMs,
    );
    return new Promise<ComponentDescription>((resolve, reject) => {
      this.inspections.set(id, { resolve, reject });
      if (!this.alive) this.rejectInspections();
      else this.send({ t: 'inspect', id, hash, code });
    }).finally(() => clearTimeout(late));
  }

  /** No new runs; it ends with the last one in it. */
  retire(): void {
    this.retiring = true;
    if (this.running === 0) this.stop({ status: 'retired', code: 'RETIRED', message: 'its time was up' });
  }

  stop(end: End, guilty: RunInFlight | null = null): void {
    if (this.end) return;
    this.end = end;
    this.guilty = guilty;
    this.mainCpuAtEnd = mainThreadCpuMs(this.pid);
    clearInterval(this.ticker);
    // The launcher may have a grip on the process, or may not: both are ended
    const inner = this.pid || (this.child.pid ? lastDescendant(this.child.pid) : 0);
    this.child.kill('SIGKILL');
    if (inner && inner !== this.child.pid) killQuietly(inner);
    if (this.child.pid === undefined) this.gone(null, null);
  }

  /** Called from time to time while it idles: what an earlier run left behind must not burn CPU or hold memory until the idle time is up. */
  checkIdle(): void {
    if (!this.alive || this.running > 0) return;
    this.unasked = 0;
    const usage = processUsage(this.pid);
    if (!usage) return;
    const burnt = usage.cpuMs - this.idleCpu;
    this.idleCpu = usage.cpuMs;
    // A process that has not run anything yet burns what loading the libraries takes
    if (this.runs === 0 || performance.now() - this.idleSince < idleTickMs) return;
    if (burnt > idleCpuMs) this.stop({ status: 'killed', code: 'CPU', message: 'it used CPU while no run was in it' });
    else if (usage.rssMb > this.settings.limits.memoryMb)
      this.stop({ status: 'memory', code: 'MEMORY', message: 'it held too much memory' });
  }

  private receive(): void {
    const reader = new FrameReader(this.settings.limits.frameBytes);
    this.channel.on('data', (chunk: Buffer) => {
      if (this.end) return;
      let run: RunInFlight | null = null;
      try {
        for (const frame of reader.read(chunk)) {
          const message = readGuestMessage(frame);
          run = 'id' in message ? (this.inFlight.get(message.id)?.run ?? null) : null;
          this.take(message, frame.length, run);
          if (this.end) return;
        }
      } catch (error) {
        if (error instanceof TooMuchOutput)
          return this.stop({ status: 'killed', code: 'OUTPUT', message: `The run put out ${error.message}` }, run);
        const broken = error instanceof ProtocolBroken || error instanceof FrameTooLarge;
        const message = broken
          ? `The process of the run sent ${error.message}`
          : `The runner's answer could not be taken: ${(error as Error).message}`;
        this.stop({ status: 'crashed', code: 'PROTOCOL', message }, run);
      }
    });
  }

  private take(message: FromGuest, bytes: number, run: RunInFlight | null): void {
    if (run) run.count(bytes);
    else this.countUnasked(message, bytes);
    switch (message.t) {
      case 'ready':
        this.pid = lastDescendant(this.child.pid!);
        return this.becomeReady();
      case 'pong':
        if (message.n === this.lastPing) this.heardOf(processUsage(this.pid)?.cpuMs ?? 0);
        return;
      case 'out':
        return run?.add(message.out);
      case 'respond':
        return run?.respond(message.status, message.headers, message.body);
      case 'done':
        if (!run) return;
        run.add(message.out);
        return this.settleDone(run, message.error);
      case 'described':
        return this.takeInspection(message.id)?.resolve(readDescription(message.description));
      case 'rejected':
        return this.takeInspection(message.id)?.reject(new ComponentRejected(message.message, message.line));
      case 'stray':
        return;
    }
  }

  /** Frames of ended, invented and other processes' runs are ignored, up to a point: reading them is our CPU. */
  private countUnasked(message: FromGuest, bytes: number): void {
    if (message.t === 'described' || message.t === 'rejected') return;
    this.unasked += bytes;
    if (this.unasked > unaskedBytes) throw new ProtocolBroken('too much that nobody asked for');
  }

  private takeInspection(id: string): { resolve: (description: ComponentDescription) => void; reject: (error: Error) => void } | undefined {
    const inspection = this.inspections.get(id);
    this.inspections.delete(id);
    return inspection;
  }

  private wakeUp(cpuMs: number): void {
    this.heardOf(cpuMs);
    this.unasked = 0;
    clearInterval(this.ticker);
    this.ticker = setInterval(() => this.tick(), tickMs);
  }

  private heardOf(cpuMs: number): void {
    this.pongAt = performance.now();
    this.pongCpu = cpuMs;
  }

  private tick(): void {
    if (this.end) return;
    const { limits } = this.settings;
    const now = performance.now();
    const usage = processUsage(this.pid);
    if (usage) {
      if (usage.rssMb > limits.memoryMb)
        return this.stop({ status: 'memory', code: 'MEMORY', message: `The code needed more than ${limits.memoryMb} MB of memory` });
      for (const { cpuAtStart } of this.inFlight.values())
        if ((usage.cpuMs - cpuAtStart) / this.inFlight.size > limits.cpuMs)
          return this.stop({ status: 'killed', code: 'CPU', message: `The code used more than ${limits.cpuMs} ms of CPU` });
    }
    // Silence is counted in the process's own CPU, so that a crowded machine does not look like a loop; waiting burns none
    const silentCpu = (usage?.cpuMs ?? 0) - this.pongCpu;
    if (silentCpu > limits.silenceCpuMs || now - this.pongAt > 4 * limits.silenceCpuMs) return this.stop(blocked);
    if (now - this.lastPing > pingMs) {
      this.lastPing = Math.round(now);
      this.send({ t: 'ping', n: this.lastPing });
    }
  }

  private settleDone(run: RunInFlight, error: RunError | null): void {
    const outOfMemory =
      error !== null && (error.code === 'ERR_MEMORY_ALLOCATION_FAILED' || error.message === 'Array buffer allocation failed');
    if (!outOfMemory) return this.settle(run, error ? 'threw' : 'ok', error);
    // The limit was met in a place where V8 can throw: the next run would meet it too
    this.retiring = true;
    this.settle(run, 'memory', { ...error, code: 'MEMORY' });
  }

  /** The result comes at once. Whatever still goes on in there could disturb the next run, so there is none. */
  private timeOut(run: RunInFlight, wallMs: number): void {
    // It may never have had its turn, because something else holds the event loop
    if (!run.alone && performance.now() - this.pongAt > blockedMs) return this.stop(blocked);
    this.retiring = true;
    this.settle(run, 'timeout', {
      name: 'TimeoutError',
      code: 'TIMEOUT',
      message: `The run took longer than ${wallMs} ms and was stopped`,
      stack: '',
    });
  }

  private settle(run: RunInFlight, status: RunStatus, error: RunError | null, again = false): void {
    const entry = this.inFlight.get(run.id);
    if (!entry) return;
    this.inFlight.delete(run.id);
    clearTimeout(entry.wall);
    // Runs that overlap share the time; what was before this run was not its doing
    const cpuMs =
      Math.max(0, ((this.end ? this.mainCpuAtEnd : mainThreadCpuMs(this.pid)) ?? entry.mainCpuAtStart) - entry.mainCpuAtStart) /
      (this.inFlight.size + 1);
    run.end(status, error, cpuMs);
    entry.done(again);
    if (this.running > 0) return;
    clearInterval(this.ticker);
    this.idleSince = performance.now();
    this.idleCpu = processUsage(this.pid)?.cpuMs ?? 0;
    if (this.retiring) this.retire();
  }

  private gone(exitCode: number | null, signal: NodeJS.Signals | null): void {
    if (this.isGone) return;
    this.isGone = true;
    const end = (this.end ??= this.ownEnd(exitCode, signal));
    clearInterval(this.ticker);
    this.failToStart(
      new SandboxUnavailable(`A runner process did not start: ${end.message} ${this.errors.trim().split('\n')[0] ?? ''}`.trim()),
    );
    const status = end.status === 'retired' ? 'killed' : end.status;
    const { code, message } = end;
    for (const { run } of [...this.inFlight.values()]) {
      const again = end.code !== 'CLOSED' && run !== this.guilty && !run.alone;
      this.settle(run, status, { name: 'SandboxError', code, message, stack: '' }, again);
    }
    this.rejectInspections();
    void this.exchange.close();
    this.finish(end);
  }

  private rejectInspections(): void {
    for (const { reject } of this.inspections.values()) reject(new ComponentRejected(this.end?.message ?? 'The code ended its process'));
    this.inspections.clear();
  }

  private ownEnd(exitCode: number | null, signal: NodeJS.Signals | null): End {
    if (/out of memory|allocation fail|ERR_MEMORY_ALLOCATION_FAILED|std::bad_alloc/i.test(this.errors))
      return { status: 'memory', code: 'MEMORY', message: 'The code needed more memory than there is' };
    return { status: 'crashed', code: 'CRASHED', message: `The process of the code ended (${signal ?? exitCode ?? 'unknown'})` };
  }

  private stillborn(run: RunInFlight): Attempt | Promise<Attempt> {
    const { code, message } = this.end!;
    run.end('killed', { name: 'SandboxError', code, message, stack: '' }, 0);
    return run.settled.then((outcome) => ({ outcome, again: true }));
  }

  private send(message: ToGuest): void {
    this.channel.write(encodeFrame(message));
  }
}
