import type { Attempt } from './runner-process.js';
import { retired, type RunnerEnd } from './runner-end.js';
import type { PooledProcess } from './runner-pool.js';
import type { RunJob, RunOutcome } from '../sandbox.js';

const outcome: RunOutcome = { status: 'ok', error: null, emits: [], logs: [], db: {}, wallMs: 0, cpuMs: 0, mainMs: 0, responded: false };

/** A process that does nothing. The test ends its runs. */
export class FakeRunnerProcess implements PooledProcess {
  readonly ready = Promise.resolve();
  readonly ended: Promise<RunnerEnd>;
  readonly modules = new Set<string>();
  readonly sources = new Set<string>();
  codeLength = 0;
  startedAt = performance.now();
  failedInRow = 0;
  alive = true;
  retiring = false;
  runs = 0;
  idleSince = performance.now();
  isHeavy = false;
  rssMb = 100;
  outputBytes = 0;
  /** Why it was stopped. */
  end: RunnerEnd | undefined;
  private readonly open: (() => void)[] = [];
  private finish!: (end: RunnerEnd) => void;

  constructor() {
    this.ended = new Promise((resolve) => (this.finish = resolve));
  }

  get running(): number {
    return this.open.length;
  }

  async run(job: RunJob): Promise<Attempt> {
    this.runs++;
    this.sources.add(job.sourceId);
    this.modules.add(`${job.component.hash} ${job.sourceId}`);
    await new Promise<void>((resolve) => this.open.push(resolve));
    this.idleSince = performance.now();
    if (this.retiring) this.retire();
    return { outcome, again: false };
  }

  finishRun(): void {
    this.open.shift()?.();
  }

  retire(): void {
    this.retiring = true;
    if (this.running === 0) this.stop(retired);
  }

  stop(end: RunnerEnd): void {
    this.alive = false;
    this.end = end;
    this.finish(end);
  }

  expectHeavy(): void {
    this.isHeavy = true;
  }

  checkIdle(): void {}
}
