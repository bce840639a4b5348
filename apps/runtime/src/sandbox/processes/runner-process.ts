import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { ComponentRejected } from '../component-rejected.js';
import type { Exchange } from './exchange.js';
import type { Jail } from '../jail/jail.js';
import { killQuietly } from '../jail/run-in-jail.js';
import { startInJail } from '../jail/start-in-jail.js';
import { lastDescendant } from './process-usage.js';
import { RunInFlight, TooMuchOutput } from './run-in-flight.js';
import { RunnerChannel } from './runner-channel.js';
import { abandoned, blocked, closed, retired, type RunnerEnd } from './runner-end.js';
import { RunnerWatch } from './runner-watch.js';
import type { SandboxLimits } from '../sandbox-limits.js';
import type { ComponentCode, ComponentDescription, RunError, RunJob, RunOutcome, RunStatus } from '../sandbox.js';
import { SandboxUnavailable } from '../sandbox-unavailable.js';
import { ProtocolBroken } from '../wire/guest-message.js';
import type { FromGuest } from '../wire/messages.js';
import { readDescription } from '../wire/read-description.js';

/** `again`: the process ended under the run, and it may well have been another run's doing. */
export interface Attempt {
  outcome: RunOutcome;
  again: boolean;
}

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

interface Entry {
  run: RunInFlight;
  wall: NodeJS.Timeout;
  done(again: boolean): void;
}

interface Inspection {
  resolve(description: ComponentDescription): void;
  reject(error: Error): void;
}

const drainMs = 500;
const keptErrorBytes = 4096;
const keptLateErrors = 8;
/** What a process may say that belongs to no run, between two runs that it is asked for */
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
  readonly ended: Promise<RunnerEnd>;
  readonly hashes = new Set<string>();
  runs = 0;
  retiring = false;

  private readonly child: ChildProcess;
  private readonly channel: RunnerChannel;
  private readonly inFlight = new Map<string, Entry>();
  /** Of the last runs that have ended: whom to tell what they had left behind. */
  private readonly lateErrors = new Map<string, (error: RunError) => void>();
  private readonly inspections = new Map<string, Inspection>();
  private watch: RunnerWatch | null = null;
  private innerPid = 0;
  private end: RunnerEnd | null = null;
  private guilty: RunInFlight | null = null;
  private errors = '';
  private unasked = 0;
  private isGone = false;
  private becomeReady!: () => void;
  private failToStart!: (error: Error) => void;
  private finish!: (end: RunnerEnd) => void;

  constructor(
    private readonly settings: RunnerSettings,
    private readonly exchange: Exchange,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.becomeReady = resolve;
      this.failToStart = reject;
    });
    this.ended = new Promise((resolve) => (this.finish = resolve));
    const { jail, uid, limits, modules, warm, trustedCa, hardened } = settings;
    const { startMs } = limits;
    const late = setTimeout(
      () => this.stop({ status: 'crashed', code: 'START', message: `it was not ready within ${startMs} ms` }),
      startMs,
    );
    this.ready.catch(() => {}).finally(() => clearTimeout(late));

    const command = jail.command({ kind: 'runner', exchangeDir: exchange.dir, uid, heapMb: limits.heapMb, args: [] });
    this.child = startInJail(command, 'ignore', 'pipe');
    this.followChild();
    this.channel = new RunnerChannel(this.child.stdio[3] as Socket);
    this.channel.receive(
      limits.frameBytes,
      (message, bytes) => this.take(message, bytes),
      (error) => this.broken(error, null),
    );
    this.channel.send({ t: 'setup', limits, modules, trustedCa, hardened, egress: `${command.exchangePath}/${exchange.socketName}` });
    if (warm.length > 0) this.channel.send({ t: 'warm', modules: warm });
  }

  get running(): number {
    return this.inFlight.size + this.inspections.size;
  }

  get alive(): boolean {
    return this.end === null;
  }

  get idleSince(): number {
    return this.watch?.idleSince ?? performance.now();
  }

  /** Call it when `ready`. Never rejects. */
  async run(job: RunJob): Promise<Attempt> {
    const { limits } = this.settings;
    for (const { run } of this.inFlight.values()) run.alone = false;
    const run = new RunInFlight(randomBytes(8).toString('hex'), job, limits, this.runs === 0);
    if (this.end) return this.stillborn(run, this.end);
    this.runs++;
    this.unasked = 0;
    this.watch?.enter(run.id);
    const ended = new Promise<boolean>((done) => {
      const wallMs = job.wallMs ?? limits.wallMs;
      this.inFlight.set(run.id, { run, wall: setTimeout(() => this.timeOut(run, wallMs), wallMs), done });
    });
    const { component, method, sourceId, props, endpoint, db, event } = job;
    const { hash } = component;
    const code = this.hashes.has(hash) ? undefined : component.code;
    this.hashes.add(hash);
    this.channel.send({ t: 'run', id: run.id, hash, code, method, sourceId, props, endpoint, db, event });
    const again = await ended;
    return { outcome: await run.settled, again };
  }

  /**
   * Call it when `ready`, once, and stop the process afterwards.
   * @param until when the caller stops waiting, in ms since the epoch
   * @throws ComponentRejected, SandboxUnavailable
   */
  async inspect({ hash, code }: ComponentCode, until: number): Promise<ComponentDescription> {
    const id = randomBytes(8).toString('hex');
    this.watch?.enter(id, this.settings.limits.inspectIdleMs);
    const late = setTimeout(() => this.stop(abandoned), until - Date.now());
    try {
      return await new Promise((resolve, reject) => {
        this.inspections.set(id, { resolve, reject });
        if (this.end) this.rejectInspections(this.end);
        else this.channel.send({ t: 'inspect', id, hash, code });
      });
    } finally {
      clearTimeout(late);
      this.inspections.delete(id);
      this.watch?.leave(id);
    }
  }

  /** No new runs; it ends with the last one in it. */
  retire(): void {
    this.retiring = true;
    if (this.running === 0) this.stop(retired);
  }

  /** At once. @param guilty the run whose doing it is, where that is known */
  stop(end: RunnerEnd, guilty: RunInFlight | null = null): void {
    if (this.end) return;
    this.end = end;
    this.guilty = guilty;
    this.watch?.halt();
    const launcher = this.child.pid;
    if (launcher === undefined) return this.gone();
    // The launcher may have a grip on the process, or may not: both are ended
    const inner = this.innerPid || lastDescendant(launcher);
    this.child.kill('SIGKILL');
    if (inner !== launcher) killQuietly(inner);
  }

  /** Called from time to time. */
  checkIdle(): void {
    // One that has not run anything yet burns what loading the libraries takes
    if (this.alive && this.runs > 0) this.watch?.checkIdle();
  }

  private followChild(): void {
    const { child } = this;
    child.stderr!.on('data', (chunk: Buffer) => {
      if (this.errors.length < keptErrorBytes) this.errors += chunk.toString('latin1');
    });
    child.on('error', ({ message }) => this.stop({ status: 'crashed', code: 'SPAWN', message }));
    let own: RunnerEnd | undefined;
    child.on('exit', (code, signal) => {
      own = ownEnd(this.errors, signal ?? String(code));
      // What it said before it ended is still to be read; a stranger that holds the channel open must not keep us waiting for more
      if (this.end) this.gone();
      else setTimeout(() => this.gone(own), drainMs).unref();
    });
    child.on('close', () => this.gone(own));
  }

  /** @returns whether there is more to take */
  private take(message: FromGuest, bytes: number): boolean {
    const run = 'id' in message ? this.inFlight.get(message.id)?.run : undefined;
    const inspection = 'id' in message ? this.inspections.get(message.id) : undefined;
    try {
      if (run) run.count(bytes);
      else if (!inspection) this.countUnasked(bytes);
      if (message.t === 'ready') this.begin();
      else if (message.t === 'pong') this.watch?.pong(message.n);
      else if (message.t === 'out') run?.add(message.out);
      else if (message.t === 'respond') run?.respond(message.status, message.headers, message.body);
      else if (message.t === 'done') this.takeEnd(run, message);
      else if (message.t === 'late') this.takeLate(message.id, message.error);
      else if (message.t === 'described') inspection?.resolve(readDescription(message.description));
      else if (message.t === 'rejected') inspection?.reject(new ComponentRejected(message.message, message.line));
    } catch (error) {
      this.broken(error as Error, run ?? null);
    }
    return this.alive;
  }

  private begin(): void {
    if (this.watch) return;
    // Now, before any code of a component could make it another one
    this.innerPid = lastDescendant(this.child.pid!);
    const ping = (n: number): void => this.channel.send({ t: 'ping', n });
    this.watch = new RunnerWatch(this.innerPid, this.settings.limits, ping, (end) => this.stop(end));
    this.becomeReady();
  }

  private takeEnd(run: RunInFlight | undefined, { out, error }: Extract<FromGuest, { t: 'done' }>): void {
    if (!run) return;
    run.add(out);
    if (!error || !isOutOfMemory(error)) return this.settle(run, error ? 'threw' : 'ok', error);
    // The limit was met in a place where V8 can throw: the next run would meet it too
    this.retiring = true;
    this.settle(run, 'memory', { ...error, code: 'MEMORY' });
  }

  private takeLate(id: string, error: RunError): void {
    const tell = this.lateErrors.get(id);
    this.lateErrors.delete(id);
    tell?.(error);
  }

  /** Frames of ended, invented and other processes' runs are ignored, up to a point: reading them is our CPU. */
  private countUnasked(bytes: number): void {
    this.unasked += bytes;
    if (this.unasked > unaskedBytes) throw new ProtocolBroken('too much unsolicited data');
  }

  private broken(error: Error, run: RunInFlight | null): void {
    if (error instanceof TooMuchOutput)
      return this.stop({ status: 'killed', code: 'OUTPUT', message: `The run wrote ${error.message}` }, run);
    const what =
      error instanceof ProtocolBroken ? 'The process of the code sent' : 'The data that the process of the code sent was rejected:';
    this.stop({ status: 'crashed', code: 'PROTOCOL', message: `${what} ${error.message}` }, run);
  }

  /** The result comes at once. Whatever still goes on in there could disturb the next run, so there is none. */
  private timeOut(run: RunInFlight, wallMs: number): void {
    // It may never have had its turn, because something else holds the event loop
    if (!run.alone && this.watch?.unanswered) return this.stop(blocked);
    this.retiring = true;
    const message = `The run took longer than ${wallMs} ms and was stopped`;
    this.settle(run, 'timeout', { name: 'TimeoutError', code: 'TIMEOUT', message, stack: '' });
  }

  private settle(run: RunInFlight, status: RunStatus, error: RunError | null, again = false): void {
    const entry = this.inFlight.get(run.id);
    if (!entry) return;
    this.inFlight.delete(run.id);
    clearTimeout(entry.wall);
    const { onLateError } = run.job;
    if (onLateError) {
      this.lateErrors.set(run.id, onLateError);
      for (const id of this.lateErrors.keys()) if (this.lateErrors.size > keptLateErrors) this.lateErrors.delete(id);
    }
    run.end(status, error, this.watch?.leave(run.id) ?? 0);
    entry.done(again);
    if (this.retiring) this.retire();
  }

  private gone(own?: RunnerEnd): void {
    if (this.isGone) return;
    this.isGone = true;
    const end = (this.end ??= own ?? ownEnd(this.errors, 'unknown'));
    this.failToStart(new SandboxUnavailable(`A runner process did not start: ${end.message}. ${this.errors.trim().split('\n')[0]}`));
    for (const { run } of [...this.inFlight.values()]) {
      const again = end !== closed && run !== this.guilty && !run.alone;
      this.settle(run, statusOf(end), errorOf(end), again);
    }
    this.rejectInspections(end);
    this.watch?.close();
    void this.exchange.close();
    this.finish(end);
  }

  private rejectInspections(end: RunnerEnd): void {
    for (const { reject } of this.inspections.values())
      reject(end === closed || end.status === 'retired' ? new SandboxUnavailable(end.message) : new ComponentRejected(end.message));
  }

  private async stillborn(run: RunInFlight, end: RunnerEnd): Promise<Attempt> {
    run.end(statusOf(end), errorOf(end), 0);
    return { outcome: await run.settled, again: end !== closed };
  }
}

function statusOf({ status }: RunnerEnd): RunStatus {
  return status === 'retired' ? 'killed' : status;
}

function errorOf({ code, message }: RunnerEnd): RunError {
  return { name: 'SandboxError', code, message, stack: '' };
}

function isOutOfMemory({ code, message }: RunError): boolean {
  return code === 'ERR_MEMORY_ALLOCATION_FAILED' || message === 'Array buffer allocation failed';
}

/** In the jail a process that V8 aborts ends with a status like any other: what it said last tells more. */
function ownEnd(errors: string, exit: string): RunnerEnd {
  if (/out of memory|allocation fail|ERR_MEMORY_ALLOCATION_FAILED|std::bad_alloc/i.test(errors))
    return { status: 'memory', code: 'MEMORY', message: 'The code needed more memory than is available' };
  return { status: 'crashed', code: 'CRASHED', message: `The process that ran the code exited (${exit})` };
}
