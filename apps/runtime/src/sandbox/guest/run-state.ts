import { AsyncLocalStorage } from 'node:async_hooks';
import type { FromGuest, GuestLimits, OutputItem, RunMessage } from '../wire/messages.js';

// A frame is sent at this size, far below the parent's limit
const flushBytes = 256 * 1024;
const flushItems = 1000;

/** The output of one run and its remaining limits. Output is sent once per turn of the event loop, so that a crash loses little. */
export class RunState {
  readonly db: Map<string, string>;
  dbBytes: number;
  emits = 0;
  emittedBytes = 0;
  logs = 0;
  logsLeftOut = 0;
  responded = false;
  done = false;
  /** Whether code that it left running has thrown after its end, which is reported once. */
  late = false;
  /** The first refused output, even if the component caught the error, because a missing event must be visible. */
  refused: Error | undefined;
  /** Ends the run with an error thrown by something that it started. */
  fail: (error: unknown) => void = () => {};

  private readonly changedKeys = new Set<string>();
  /** Unsent changes; only the last one of each key is sent */
  private readonly waitingChanges = new Map<string, OutputItem & ['db', ...unknown[]]>();
  private out: OutputItem[] = [];
  private outBytes = 0;
  private flushing = false;

  constructor(
    readonly job: RunMessage,
    readonly limits: GuestLimits,
    private readonly send: (message: FromGuest) => void,
  ) {
    this.db = new Map(Object.entries(job.db));
    this.dbBytes = Object.entries(job.db).reduce((sum, [key, value]) => sum + dbEntryBytes(key, value), 0);
  }

  put(item: OutputItem, bytes: number): void {
    this.out.push(item);
    this.outBytes += bytes;
    if (this.outBytes >= flushBytes || this.out.length >= flushItems) this.flush();
    else if (!this.flushing) {
      this.flushing = true;
      setImmediate(() => {
        this.flushing = false;
        this.flush();
      });
    }
  }

  /** @throws RangeError in the component's own code */
  putChange(key: string, value: string | null): void {
    if (this.changedKeys.size >= this.limits.dbKeys && !this.changedKeys.has(key))
      throw this.refuse(new RangeError(`db.set: more than ${this.limits.dbKeys} keys changed in one run`));
    this.changedKeys.add(key);
    const waiting = this.waitingChanges.get(key);
    if (waiting) {
      waiting[2] = value;
      this.outBytes += value?.length ?? 0;
      return;
    }
    const item: OutputItem & ['db', ...unknown[]] = ['db', key, value];
    this.waitingChanges.set(key, item);
    this.put(item, key.length + (value?.length ?? 0));
  }

  reply(status: number, headers: Record<string, string | string[]>, body: string): void {
    this.responded = true;
    this.send({ t: 'respond', id: this.job.id, status, headers, body });
  }

  refuse(error: Error): Error {
    this.refused ??= error;
    return error;
  }

  /** The unsent output, for the last message of the run. */
  takeRest(): OutputItem[] {
    const rest = this.out;
    this.waitingChanges.clear();
    this.out = [];
    this.outBytes = 0;
    return rest;
  }

  private flush(): void {
    if (this.out.length > 0 && !this.done) this.send({ t: 'out', id: this.job.id, out: this.takeRest() });
  }
}

export function dbEntryBytes(key: string, value: string): number {
  return Buffer.byteLength(key) + Buffer.byteLength(value);
}

/** The run to which the executing code belongs. console, `process.env` and uncaught errors are shared by all runs, and find the run with it. */
export const currentRun = new AsyncLocalStorage<RunState>();
