import type { SandboxLimits } from '../sandbox-config.js';
import type { Emit, HttpReply, LogLine, RunError, RunJob, RunOutcome, RunStatus } from '../sandbox.js';
import { ProtocolBroken } from '../wire/guest-message.js';
import type { OutputItem } from '../wire/messages.js';
import type { FrameCost } from './runner-channel.js';
import type { RunnerEnd } from './runner-end.js';

/** The output exceeds limits that the guest enforces, so the guest no longer controls the process. */
export class TooMuchOutput extends Error {}

/** The output of one run so far, on the parent's side. */
export class RunInFlight {
  readonly startedAt = performance.now();
  readonly settled: Promise<RunOutcome>;
  /** Like `RunOutcome.mainMs`, so far */
  mainMs = 0;
  /** Whether another run was in its process at the same time */
  overlaps = false;
  outputBytes = 0;
  /** The code with its variables, as one of the `modules` of its process */
  module = '';
  refused?: RunError[];
  private settle!: (outcome: RunOutcome) => void;
  private readonly emits: Emit[] = [];
  private readonly logs: LogLine[] = [];
  // The component chooses the keys, and may choose `__proto__`
  private readonly db = new Map<string, string | null>();
  private readonly storedBytes = new Map<string, number>();
  private dbBytes = 0;
  private dbKeys = 0;
  /** Of what it keeps. Runs that overlap may have made it larger than the limits together. */
  private mostDbBytes = 0;
  private mostDbKeys = 0;
  private outputTokens = 0;
  private outputPieces = 0;
  private emittedBytes = 0;
  private responded = false;

  constructor(
    readonly id: string,
    readonly job: RunJob,
    private readonly limits: SandboxLimits,
    /** Whether no run was in its process before */
    private readonly isFirst: boolean,
  ) {
    this.settled = new Promise((settle) => (this.settle = settle));
  }

  /** @throws TooMuchOutput */
  count({ bytes, tokens, pieces, ms }: FrameCost): void {
    this.mainMs += ms;
    this.outputBytes += bytes;
    this.outputTokens += tokens;
    this.outputPieces += pieces;
    if (this.outputBytes > this.limits.outputBytes) throw new TooMuchOutput(`more than ${this.limits.outputBytes} bytes of output`);
    if (this.outputTokens > this.limits.outputTokens) throw new TooMuchOutput(`more than ${this.limits.outputTokens} pieces of output`);
    if (this.outputPieces > this.limits.outputPieces) throw new TooMuchOutput(`output in more than ${this.limits.outputPieces} pieces`);
  }

  /** @throws TooMuchOutput, ProtocolBroken */
  add(items: OutputItem[]): void {
    const begun = performance.now();
    try {
      this.addAll(items);
    } finally {
      this.mainMs += performance.now() - begun;
    }
  }

  private addAll(items: OutputItem[]): void {
    for (const item of items) {
      if (item[0] !== 'emit' && this.job.method === 'options') throw new ProtocolBroken('output that options() does not have');
      if (item[0] === 'emit') this.addEmit(item[1], item[2]);
      else if (item[0] === 'log') this.addLog(item);
      else {
        if (this.db.size === 0) this.countStored();
        this.countDb(item[1], item[2]);
        this.db.set(item[1], item[2]);
        if (this.db.size > this.limits.dbKeys) throw new TooMuchOutput(`more than ${this.limits.dbKeys} changed keys in the db`);
      }
    }
    // of each key, the items have the last change only, so their order does not count
    if (this.dbBytes > this.mostDbBytes) throw new TooMuchOutput(`more than ${this.mostDbBytes} bytes in the db`);
    if (this.dbKeys > this.mostDbKeys) throw new TooMuchOutput(`more than ${this.mostDbKeys} keys in the db`);
  }

  /** @throws ProtocolBroken */
  respond(status: number, headers: Record<string, string | string[]>, body: string): void {
    if (this.responded) return;
    const bytes = Buffer.from(body, 'base64');
    if (bytes.length > this.limits.respondBytes) throw new ProtocolBroken('a reply over the limit');
    this.responded = true;
    const reply: HttpReply = { status, headers, body: bytes };
    this.job.onRespond?.(reply);
  }

  /**
   * Whether this run probably caused the end of its process: if so, its calls to other systems must not be repeated. Code that an earlier run has left
   * running can block the process before this one begins, which its first frame shows.
   */
  isCauseOf({ isOfRunningCode = false }: RunnerEnd): boolean {
    const hasBegun = this.outputBytes > 0;
    return !this.overlaps && (this.isFirst || (isOfRunningCode && hasBegun));
  }

  end(status: RunStatus, error: RunError | null, cpuMs: number): void {
    this.settle({
      status,
      error,
      ...(this.refused && { refused: this.refused }),
      emits: this.emits,
      logs: this.logs,
      db: Object.assign(Object.create(null), Object.fromEntries(this.db)) as Record<string, string | null>,
      wallMs: performance.now() - this.startedAt,
      cpuMs,
      mainMs: this.mainMs,
      responded: this.responded,
    });
  }

  private addEmit(event: string, meta: Omit<Emit, 'event'>): void {
    const bytes = Buffer.byteLength(event);
    this.emittedBytes += bytes;
    if (bytes > this.limits.eventBytes || this.emittedBytes > this.limits.emittedBytes || this.emits.length >= this.limits.emits)
      throw new TooMuchOutput('more emitted than the limits allow');
    this.emits.push({ event, ...meta });
  }

  private addLog([, level, ts, message, args]: Extract<OutputItem, ['log', ...unknown[]]>): void {
    // One more than the limit, for the line that states how many were omitted
    if (this.logs.length > this.limits.logs || message.length > this.limits.logBytes || (args?.length ?? 0) > this.limits.logBytes)
      throw new TooMuchOutput('more logged than the limits allow');
    const line: LogLine = { level, ts, message };
    if (args !== null) line.args = args;
    this.logs.push(line);
  }

  /** Not before the first change: each run that only reads its event would pay for it. */
  private countStored(): void {
    for (const [key, value] of Object.entries(this.job.db)) this.countDb(key, value);
    this.mostDbBytes = Math.max(this.limits.dbBytes, this.dbBytes);
    this.mostDbKeys = Math.max(this.limits.dbKeys, this.dbKeys);
  }

  private countDb(key: string, value: string | null): void {
    const bytes = value === null ? 0 : Buffer.byteLength(key) + Buffer.byteLength(value);
    const before = this.storedBytes.get(key) ?? 0;
    this.dbBytes += bytes - before;
    this.dbKeys += Number(bytes > 0) - Number(before > 0);
    this.storedBytes.set(key, bytes);
  }
}

const keptLateErrors = 8;

interface Entry {
  run: RunInFlight;
  wall: NodeJS.Timeout;
  done(again: boolean): void;
}

/** The runs in one process, from their start to their end; and the last ones that ended, whose leftover code may still throw. */
export class RunsInFlight {
  private readonly entries = new Map<string, Entry>();
  private readonly lateErrors = new Map<string, (error: RunError) => void>();

  get size(): number {
    return this.entries.size;
  }

  find(id: string): RunInFlight | undefined {
    return this.entries.get(id)?.run;
  }

  all(): RunInFlight[] {
    return [...this.entries.values()].map(({ run }) => run);
  }

  /** Resolves when the run has ended, with `again` of `end`. */
  begin(run: RunInFlight, wallMs: number, onTimeout: () => void): Promise<boolean> {
    return new Promise((done) => this.entries.set(run.id, { run, wall: setTimeout(onTimeout, wallMs), done }));
  }

  /** Gives a run more time, when that of `begin` has passed. */
  extend(run: RunInFlight, ms: number, onTimeout: () => void): void {
    const entry = this.entries.get(run.id);
    if (entry) entry.wall = setTimeout(onTimeout, ms);
  }

  /** @param again whether to repeat the run, because another run probably caused its end @returns false if it has already ended */
  end(
    run: RunInFlight,
    { status, error, again }: { status: RunStatus; error: RunError | null; again: boolean },
    cpuMs: () => number,
  ): boolean {
    const entry = this.entries.get(run.id);
    if (!entry) return false;
    this.entries.delete(run.id);
    clearTimeout(entry.wall);
    const { onLateError } = run.job;
    if (onLateError) {
      this.lateErrors.set(run.id, onLateError);
      for (const id of this.lateErrors.keys()) if (this.lateErrors.size > keptLateErrors) this.lateErrors.delete(id);
    }
    run.end(status, error, cpuMs());
    entry.done(again);
    return true;
  }

  /** Reports an error of code that an ended run left running, once per run. */
  reportLate(id: string, error: RunError): void {
    const report = this.lateErrors.get(id);
    this.lateErrors.delete(id);
    report?.(error);
  }
}
