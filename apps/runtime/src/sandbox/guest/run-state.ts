import { AsyncLocalStorage } from 'node:async_hooks';
import { type FromGuest, type GuestLimits, mostRefused, type OutputItem, type RunMessage } from '../wire/messages.js';

// taken before any component could replace it
const clock = performance.now.bind(performance);

// A frame is sent before it has more output than this, or with one item that has more: JSON can make it six times as large, and the parent has a limit
const flushBytes = 256 * 1024;
const flushItems = 1000;
// Frames that are sent at once after a pause, and the gap between further ones: a frame costs more than the output in it
const framesAtOnce = 4;
const gapMs = 2;
// In all of a run, because the parent limits its output, and a change of the db counts each time that it is sent. The last changes are sent at its end
const mostFramesAtOnce = 1000;
const mostChangedBytes = 8 << 20;

/**
 * The output of one run and its remaining limits. It is sent at once, because an endless loop or a lack of memory may follow, after which nothing can
 * be sent. If there is much, it is gathered, and sent after a gap or at the end of the turn of the event loop.
 */
export class RunState {
  emits = 0;
  emittedBytes = 0;
  logs = 0;
  logsLeftOut = 0;
  /** The value with which `run` is called. */
  received: unknown;
  responded = false;
  /** Whether code that it left running has thrown after its end, which is reported once. */
  late = false;
  /** The first errors of refused output, because a missing event must be visible even if the component has caught the error. */
  readonly refused: unknown[] = [];
  refusedLeftOut = 0;
  /** `options()`: what it logs and changes in the db is not kept. */
  private readonly hasResultOnly: boolean;
  /** Ends the run with an error thrown by something that it started. */
  fail: (error: unknown) => void = () => {};

  private storedDb: Map<string, string> | undefined;
  private storedBytes: number | undefined;
  private readonly changedKeys = new Set<string>();
  /** Unsent changes; only the last one of each key is sent */
  private readonly waitingChanges = new Map<string, OutputItem & ['db', ...unknown[]]>();
  private changedBytes = 0;
  /** Those that are sent at the end of the run */
  private readonly lastChanges = new Map<string, string | null>();
  private out: OutputItem[] = [];
  private outBytes = 0;
  private flushing = false;
  private sentAtOnce = 0;
  /** When the gaps of all frames that were sent at once are over */
  private gapsEnd = 0;

  constructor(
    readonly job: RunMessage,
    readonly limits: GuestLimits,
    private readonly send: (message: FromGuest) => void,
  ) {
    this.hasResultOnly = job.method === 'options';
    inProgress.add(this);
  }

  get done(): boolean {
    return !inProgress.has(this);
  }

  /** The unsent output, for the last message of the run. */
  end(): OutputItem[] {
    inProgress.delete(this);
    const changes = Array.from(this.lastChanges, ([key, value]): OutputItem => ['db', key, value]);
    return [...this.takeRest(), ...changes];
  }

  /** Read when it is used for the first time, because most runs may not need it. */
  get db(): Map<string, string> {
    return (this.storedDb ??= new Map(Object.entries(this.job.db)));
  }

  get dbBytes(): number {
    return (this.storedBytes ??= [...this.db].reduce((sum, [key, value]) => sum + dbEntryBytes(key, value), 0));
  }

  set dbBytes(bytes: number) {
    this.storedBytes = bytes;
  }

  put(item: OutputItem, bytes: number): void {
    if (item[0] !== 'emit' && this.hasResultOnly) return;
    this.sendBefore(bytes);
    this.out.push(item);
    this.outBytes += bytes;
    this.sendSoon();
  }

  /** @throws RangeError in the component's own code */
  putChange(key: string, value: string | null): void {
    if (this.hasResultOnly) return;
    if (this.changedKeys.size >= this.limits.dbKeys && !this.changedKeys.has(key))
      throw this.refuse(new RangeError(`db.set: more than ${this.limits.dbKeys} keys changed in one run`));
    this.changedKeys.add(key);
    const bytes = value?.length ?? 0;
    const size = key.length + bytes;
    // In order, so that the parent never has more of the db than there was at some time
    if (this.lastChanges.size > 0 || this.changedBytes + size > mostChangedBytes) return void this.lastChanges.set(key, value);
    this.sendBefore(size);
    const waiting = this.waitingChanges.get(key);
    if (waiting) {
      this.outBytes += bytes - (waiting[2]?.length ?? 0);
      waiting[2] = value;
      return this.sendSoon();
    }
    const item: OutputItem & ['db', ...unknown[]] = ['db', key, value];
    this.waitingChanges.set(key, item);
    this.put(item, size);
  }

  reply(status: number, headers: Record<string, string | string[]>, body: string): void {
    this.responded = true;
    this.send({ t: 'respond', id: this.job.id, status, headers, body });
  }

  /** Lets the parent know that the run has begun, unless its output has. */
  confirm(): void {
    if (!this.done && this.sentAtOnce === 0 && !this.responded) this.send({ t: 'out', id: this.job.id, out: this.takeRest() });
  }

  refuse(error: Error): Error {
    if (this.refused.length < mostRefused) this.refused.push(error);
    else this.refusedLeftOut++;
    return error;
  }

  private takeRest(): OutputItem[] {
    const rest = this.out;
    for (const [, key, value] of this.waitingChanges.values()) this.changedBytes += key.length + (value?.length ?? 0);
    this.waitingChanges.clear();
    this.out = [];
    this.outBytes = 0;
    return rest;
  }

  /** Sends what waits if it would become too much with further output of this size. */
  private sendBefore(bytes: number): void {
    if (this.outBytes + bytes > flushBytes) this.flush();
  }

  private sendSoon(): void {
    if (this.outBytes >= flushBytes || this.out.length >= flushItems || this.maySendAtOnce()) this.flush();
    else if (!this.flushing) {
      this.flushing = true;
      setImmediate(() => {
        this.flushing = false;
        this.flush();
      });
    }
  }

  private maySendAtOnce(): boolean {
    const now = clock();
    if (this.gapsEnd - now > (framesAtOnce - 1) * gapMs) return false;
    if (this.sentAtOnce >= mostFramesAtOnce) return false;
    this.gapsEnd = Math.max(this.gapsEnd, now) + gapMs;
    this.sentAtOnce++;
    return true;
  }

  private flush(): void {
    if (this.out.length > 0 && !this.done) this.send({ t: 'out', id: this.job.id, out: this.takeRest() });
  }
}

const inProgress = new Set<RunState>();

export function dbEntryBytes(key: string, value: string): number {
  return Buffer.byteLength(key) + Buffer.byteLength(value);
}

/** The run to which the executing code belongs. console, `process.env` and uncaught errors are shared by all runs, and find the run with it. */
export const currentRun = new AsyncLocalStorage<RunState>();

/**
 * The run whose log gets what the executing code prints. The callbacks of a client that a variable keeps have the context of the run that created it: when
 * that run has ended, they belong to the run in progress of the same source, if it is the only one.
 */
export function printingRun(): RunState | undefined {
  const run = currentRun.getStore();
  if (!run?.done) return run;
  const [next, another] = [...inProgress].filter(({ job }) => job.sourceId === run.job.sourceId);
  return another ? undefined : next;
}
