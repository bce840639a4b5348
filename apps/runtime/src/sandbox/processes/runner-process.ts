import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  type ComponentCode,
  type ComponentDescription,
  ComponentRejected,
  type Inspector,
  PackagesMissing,
  type RunError,
  type RunJob,
  type RunOutcome,
  type RunStatus,
  SandboxUnavailable,
} from '../sandbox.js';
import type { Exchange } from './exchange.js';
import type { EgressBudget, EgressBudgets } from '../egress/egress-budget.js';
import type { Jail } from '../jail/jail.js';
import { startInJail } from '../jail/run-in-jail.js';
import { Inspections } from './inspections.js';
import { JailedChild } from './jailed-child.js';
import { RunInFlight, RunsInFlight, TooMuchOutput } from './runs-in-flight.js';
import { type FrameCost, RunnerChannel } from './runner-channel.js';
import { abandoned, blocked, closed, errorOf, retired, type RunnerEnd, statusOf } from './runner-end.js';
import { RunnerWatch } from './runner-watch.js';
import type { SandboxLimits } from '../sandbox-config.js';
import { ProtocolBroken } from '../wire/guest-message.js';
import type { FromGuest } from '../wire/messages.js';
import { readDescription } from '../wire/read-description.js';

/** `again`: the process ended during the run, perhaps because of another run. */
export interface Attempt {
  outcome: RunOutcome;
  again: boolean;
}

export interface RunnerSettings {
  jail: Jail;
  /** The connections of every account, and what it owes */
  budgets: EgressBudgets;
  uid: number;
  limits: SandboxLimits;
  modules: string[];
  /** Loaded before the first component is */
  warm: string[];
  trustedCa: string | null;
  /** false: for tests of the jail alone */
  hardened: boolean;
}

const MB = 1 << 20;
/** A process is replaced when the code of its packages exceeds this part of its heap. Measured: evaluated packages need six times the memory of their code. */
const packagesShare = 8;
/** The output of a process that belongs to no run, between the starts of two runs. */
const unsolicitedBytes = 1 << 20;
// How much more reading a token of JSON costs than reading a byte of text
const tokenBytes = 32;
// The same of reading a piece
const pieceBytes = 256;

/**
 * One jailed process, from its start to its end.
 *
 *     starting ──ready──▶ serving ──retire()──▶ retiring ──last run done──▶ dead
 *         └───────────────────┴───── a limit, a broken frame, its own end ────▶ dead
 *
 * Each of its messages must name a run or an inspection that was started here. When it dies, its runs end: with the cause of its death if a run is
 * the cause, otherwise with `again`.
 */
export class RunnerProcess {
  readonly ready: Promise<void>;
  readonly ended: Promise<RunnerEnd>;
  readonly modules = new Set<string>();
  readonly sources = new Set<string>();
  codeLength = 0;
  readonly startedAt = performance.now();
  runs = 0;
  failedInRow = 0;
  retiring = false;

  /** The modules of which a run has succeeded. */
  private readonly loaded = new Set<string>();
  /** The packages that it has, in characters. */
  private packagesLength = 0;
  /** Of the code that it has. */
  private readonly hashes = new Set<string>();
  private readonly child: JailedChild;
  private readonly channel: RunnerChannel;
  private readonly inFlight = new RunsInFlight();
  private readonly inspections = new Inspections();
  private watch: RunnerWatch | null = null;
  private end: RunnerEnd | null = null;
  private cause: RunInFlight | null = null;
  private unsolicited = 0;
  /** Of its account; null: it has none yet */
  private budget: EgressBudget | null = null;
  private isGone = false;
  private becomeReady!: () => void;
  private failToStart!: (error: Error) => void;
  private finish!: (end: RunnerEnd) => void;

  /** @throws SandboxUnavailable if the process cannot be started; the caller then closes the exchange */
  static async start(settings: RunnerSettings, exchange: Exchange): Promise<RunnerProcess> {
    const { jail, uid, limits } = settings;
    const command = jail.command({ kind: 'runner', exchangeDir: exchange.dir, uid, heapMb: limits.heapMb, args: [] });
    const child = await startInJail(command, 'ignore', 'pipe');
    try {
      return new RunnerProcess(settings, exchange, child, `${command.exchangePath}/${exchange.socketName}`);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  private constructor(
    private readonly settings: RunnerSettings,
    private readonly exchange: Exchange,
    child: ChildProcess,
    egress: string,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.becomeReady = resolve;
      this.failToStart = reject;
    });
    this.ended = new Promise((resolve) => (this.finish = resolve));
    const { limits, modules, warm, trustedCa, hardened } = settings;
    this.child = new JailedChild(
      child,
      limits.errorPieces,
      (ms) => this.budget?.spend(ms),
      (end) => this.stop(end),
      (end) => this.gone(end),
    );
    void exchange.flooded.then(() =>
      this.stop({ status: 'killed', code: 'CONNECTIONS', message: 'The code opened far more connections than it may' }),
    );
    this.channel = new RunnerChannel(this.child.channel, limits);
    this.channel.receive(
      (message, cost) => this.take(message, cost),
      (error, ms) => {
        this.budget?.spend(ms);
        this.broken(error, null);
      },
    );
    this.channel.send({ t: 'setup', limits, modules, trustedCa, hardened, egress });
    if (warm.length > 0) this.channel.send({ t: 'warm', modules: warm });

    const { startMs } = limits;
    const late = setTimeout(
      () => this.stop({ status: 'crashed', code: 'START', message: `it was not ready within ${startMs} ms` }),
      startMs,
    );
    this.ready.catch(() => {}).finally(() => clearTimeout(late));
  }

  get running(): number {
    return this.inFlight.size + this.inspections.size;
  }

  get alive(): boolean {
    return this.end === null;
  }

  /** Resident memory, in MB; 0 before it is ready, and when it has ended. */
  get rssMb(): number {
    return this.watch?.rssMb ?? 0;
  }

  get outputBytes(): number {
    return this.inFlight.all().reduce((sum, { outputBytes }) => sum + outputBytes, this.channel.pendingBytes);
  }

  get idleSince(): number {
    return this.watch?.idleSince ?? performance.now();
  }

  /** Whether it uses, or has used until its end, most of a CPU. */
  get isHeavy(): boolean {
    return this.watch?.priority.isHeavy ?? false;
  }

  expectHeavy(): void {
    this.watch?.priority.expectHeavy();
  }

  /** Call it when `ready`. Never rejects. */
  async run(job: RunJob): Promise<Attempt> {
    const { limits } = this.settings;
    const run = new RunInFlight(randomBytes(8).toString('hex'), job, limits, this.runs === 0);
    if (this.end) return this.alreadyEnded(run, this.end);
    for (const other of this.inFlight.all()) other.overlaps = run.overlaps = true;
    this.charge(job.accountId);
    this.runs++;
    this.sources.add(job.sourceId);
    this.unsolicited = 0;
    this.watch?.enter(run.id);
    const wallMs = job.wallMs ?? (job.method === 'deactivate' ? limits.deactivateMs : limits.wallMs);
    const ended = this.inFlight.begin(run, wallMs, () => this.timeOut(run, wallMs));
    const { component, method, sourceId, props, endpoint, db, event, httpBody } = job;
    const { hash } = component;
    const { code, packages } = this.hashes.has(hash) ? { code: undefined, packages: undefined } : component;
    this.hashes.add(hash);
    const begun = performance.now();
    const variables = variablesOf(job);
    run.mainMs += performance.now() - begun;
    const module = `${hash} ${variables}`;
    if (!this.modules.has(module)) this.codeLength += component.code.length;
    this.modules.add(module);
    run.module = module;
    this.packagesLength += packages?.length ?? 0;
    if (this.packagesLength > (limits.heapMb * MB) / packagesShare) this.retiring = true;
    run.mainMs += this.channel.send({
      t: 'run',
      id: run.id,
      hash,
      code,
      packages,
      variables,
      method,
      sourceId,
      props,
      endpoint,
      db,
      event,
      httpBody,
    });
    const again = await ended;
    return { outcome: await run.settled, again };
  }

  /**
   * Call it when `ready`, once, and stop the process afterwards.
   * @param until when the caller stops waiting, in ms since the epoch
   * @param inspector whose connections it may use, and whether they install packages
   * @throws PackagesMissing, ComponentRejected, SandboxUnavailable
   */
  async inspect(
    { hash, code, packages }: ComponentCode,
    until: number,
    { accountId = '', installs = false }: Inspector,
  ): Promise<ComponentDescription> {
    this.charge(accountId);
    const id = randomBytes(8).toString('hex');
    this.watch?.enter(id, this.settings.limits.inspectIdleMs);
    const late = setTimeout(() => this.stop(abandoned), until - Date.now());
    try {
      const description = this.inspections.begin(id);
      if (this.end) this.inspections.rejectAll(this.end);
      else this.channel.send({ t: 'inspect', id, hash, code, packages, installs });
      return await description;
    } finally {
      clearTimeout(late);
      this.inspections.finish(id);
      this.watch?.leave(id);
    }
  }

  /** Accepts no new runs. The process ends with its last run. */
  retire(): void {
    this.retiring = true;
    if (this.running === 0) this.stop(retired);
  }

  /** Ends the process at once. @param cause the run that caused it, if known */
  stop(end: RunnerEnd, cause: RunInFlight | null = null): void {
    if (this.end) return;
    this.end = end;
    this.cause = cause;
    this.watch?.halt();
    this.child.kill();
  }

  /** Called periodically. */
  checkIdle(): void {
    // A run or an inspection ends with its last frame, so this one belongs to none
    if (this.running === 0 && this.channel.pendingBytes > unsolicitedBytes)
      this.broken(new ProtocolBroken('too much unsolicited data'), null);
    // A process that has not run anything yet uses CPU to load the libraries
    if (this.alive && this.runs > 0) this.watch?.checkIdle();
  }

  /** @returns whether there is more to take */
  private take(message: FromGuest, cost: FrameCost): boolean {
    const run = 'id' in message ? this.inFlight.find(message.id) : undefined;
    const inspection = endsInspection(message) ? this.inspections.take(message.id) : undefined;
    try {
      if (run) run.count(cost);
      else if (inspection) this.budget?.spend(cost.ms);
      else this.countUnsolicited(cost);
      if (message.t === 'ready') this.begin();
      else if (message.t === 'pong') this.watch?.pong(message.n);
      else if (message.t === 'out') run?.add(message.out);
      else if (message.t === 'respond') run?.respond(message.status, message.headers, message.body);
      else if (message.t === 'done') this.takeEnd(run, message);
      else if (message.t === 'late') this.inFlight.reportLate(message.id, message.error);
      else if (message.t === 'described') inspection?.resolve(readDescription(message.description));
      else if (message.t === 'missing') inspection?.reject(new PackagesMissing(message.imports));
      else if (message.t === 'rejected') inspection?.reject(new ComponentRejected(message.message, message.line, message.file));
    } catch (error) {
      this.broken(error as Error, run ?? null);
    }
    return this.alive;
  }

  private charge(accountId: string): void {
    this.budget = this.settings.budgets.of(accountId);
    this.exchange.charge(this.budget);
  }

  private begin(): void {
    if (this.watch) return;
    const ping = (n: number): void => void this.channel.send({ t: 'ping', n });
    this.watch = new RunnerWatch(this.child.locate(), this.settings.limits, ping, (end) => this.stop(end));
    this.becomeReady();
  }

  private takeEnd(run: RunInFlight | undefined, { out, error, refused }: Extract<FromGuest, { t: 'done' }>): void {
    if (!run) return;
    run.add(out);
    run.refused = refused;
    if (!error || !isOutOfMemory(error)) return this.settle(run, error ? 'threw' : 'ok', error);
    // V8 threw an error because of the limit; the next run would reach it, too
    this.retiring = true;
    this.settle(run, 'memory', { ...error, code: 'MEMORY' });
  }

  /** Ignores frames of runs that have ended or were never started here, up to a limit, because reading them costs the parent CPU. */
  private countUnsolicited({ bytes, tokens, pieces, ms }: FrameCost): void {
    this.budget?.spend(ms);
    this.unsolicited += bytes + tokenBytes * tokens + pieceBytes * pieces;
    if (this.unsolicited > unsolicitedBytes) throw new ProtocolBroken('too much unsolicited data');
  }

  private broken(error: Error, run: RunInFlight | null): void {
    if (error instanceof TooMuchOutput)
      return this.stop({ status: 'killed', code: 'OUTPUT', message: `The run wrote ${error.message}` }, run);
    const what =
      error instanceof ProtocolBroken ? 'The process of the code sent' : 'The data that the process of the code sent was rejected:';
    this.stop({ status: 'crashed', code: 'PROTOCOL', message: `${what} ${error.message}` }, run);
  }

  /** Returns the result at once. Code that still runs in the process could disturb the next run, so there is none. */
  private timeOut(run: RunInFlight, wallMs: number): void {
    const stillMs = this.watch?.stillMs(run.id) ?? 0;
    const left = wallMs + stillMs - (performance.now() - run.startedAt);
    if (this.alive && stillMs > 0 && left > 0) return this.inFlight.extend(run, left, () => this.timeOut(run, wallMs));
    // It may not have run at all, because something else blocks the event loop
    const end = blocked(this.settings.limits.silenceCpuMs);
    if (this.watch?.unresponsive && !run.isCauseOf(end)) return this.stop(end);
    this.retiring = true;
    const message = `The run took longer than ${wallMs} ms and was stopped`;
    this.settle(run, 'timeout', { name: 'TimeoutError', code: 'TIMEOUT', message, stack: '' });
  }

  private settle(run: RunInFlight, status: RunStatus, error: RunError | null, again = false): void {
    if (!this.inFlight.end(run, { status, error, again }, () => this.watch?.leave(run.id) ?? 0)) return;
    this.failedInRow = status === 'ok' ? 0 : this.failedInRow + 1;
    if (status === 'ok') this.loaded.add(run.module);
    // It may have failed while it was loaded: then the next run evaluates it again, in more memory
    else if (!this.loaded.has(run.module)) this.modules.delete(run.module);
    if (this.watch?.leaksFiles || this.child.hasWarnedMuch) this.retiring = true;
    if (this.retiring) this.retire();
  }

  private gone(own: RunnerEnd): void {
    if (this.isGone) return;
    this.isGone = true;
    const end = (this.end ??= own);
    this.failToStart(new SandboxUnavailable(`A runner process did not start: ${end.message}. ${this.child.firstError}`));
    for (const run of this.inFlight.all()) {
      const again = end.isForOthers ?? (end !== closed && run !== this.cause && !run.isCauseOf(end));
      this.settle(run, statusOf(end), errorOf(end), again);
    }
    this.inspections.rejectAll(end);
    this.watch?.close();
    void this.exchange.close();
    this.finish(end);
  }

  private async alreadyEnded(run: RunInFlight, end: RunnerEnd): Promise<Attempt> {
    run.end(statusOf(end), errorOf(end), 0);
    return { outcome: await run.settled, again: end !== closed };
  }
}

/** The variables of a module belong to one source with these values: what the code keeps in them, such as a client with a token, may depend on any of them. */
function variablesOf({ sourceId, props, endpoint }: RunJob): string {
  const values = createHash('sha256').update(JSON.stringify([props, endpoint]));
  return `${sourceId} ${values.digest('base64url')}`;
}

type EndOfInspection = Extract<FromGuest, { t: 'described' | 'missing' | 'rejected' }>;

const endsInspection = (message: FromGuest): message is EndOfInspection => ['described', 'missing', 'rejected'].includes(message.t);

function isOutOfMemory({ code, message }: RunError): boolean {
  return code === 'ERR_MEMORY_ALLOCATION_FAILED' || message === 'Array buffer allocation failed';
}
