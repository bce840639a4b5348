import type { RunError, RunStatus } from '../sandbox.js';
import type { RunInFlight } from './run-in-flight.js';

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

  /** @param again whether to repeat the run, because its end was probably caused by another one @returns false if it has ended before */
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
