import { createHistogram } from 'node:perf_hooks';

const SAMPLE_MS = 100;
const LOOK_MS = 1000;
/** The share of the time in which the event loop works, below which it is sampled rarely. */
const IDLE = 0.05;

/** How long an event loop has worked and waited so far, in ms. */
interface LoopTimes {
  active: number;
  idle: number;
}

/**
 * How late timers are, because the event loop works or the process stands still: a histogram since the last reset, in ns. It has ten samples per second
 * in a process that works, but one per second in an idle one, because each sample wakes it.
 */
export class EventLoopLag {
  private readonly lags = createHistogram();
  private timer: NodeJS.Timeout | undefined;
  private lastTimes: LoopTimes;
  private lookedAt = performance.now();

  constructor(private readonly times: () => LoopTimes = () => performance.eventLoopUtilization()) {
    this.lastTimes = times();
  }

  get min(): number {
    return this.lags.count === 0 ? 0 : this.lags.min;
  }

  get max(): number {
    return this.lags.max;
  }

  get mean(): number {
    return this.lags.count === 0 ? 0 : this.lags.mean;
  }

  get stddev(): number {
    return this.lags.count === 0 ? 0 : this.lags.stddev;
  }

  percentile(percentile: number): number {
    return this.lags.count === 0 ? 0 : this.lags.percentile(percentile);
  }

  /** It always is: for prom-client, which expects this method. */
  enable(): boolean {
    return true;
  }

  reset(): void {
    this.lags.reset();
  }

  /** Call it once per second. */
  look(): void {
    const now = performance.now();
    const { active, idle } = this.times();
    const [worked, rested] = [active - this.lastTimes.active, idle - this.lastTimes.idle];
    if (!this.timer) this.record(now - this.lookedAt - LOOK_MS);
    this.lastTimes = { active, idle };
    this.lookedAt = now;
    if (worked < IDLE * (worked + rested)) {
      clearTimeout(this.timer);
      this.timer = undefined;
    } else if (!this.timer) {
      this.sampleNext();
    }
  }

  private sampleNext(): void {
    const due = performance.now() + SAMPLE_MS;
    this.timer = setTimeout(() => {
      this.record(performance.now() - due);
      this.sampleNext();
    }, SAMPLE_MS).unref();
  }

  private record(ms: number): void {
    // a histogram has no zeros
    this.lags.record(Math.max(1, Math.round(ms * 1e6)));
  }
}
