import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

const RESOLUTION_MS = 100;
/** The share of the time in which the event loop works, below which it is not sampled. */
const IDLE = 0.05;

/** How long an event loop has worked and waited so far, in ms. */
interface LoopTimes {
  active: number;
  idle: number;
}

/**
 * How late the event loop is, in ns, since the last reset: a histogram like those of `monitorEventLoopDelay`, without the time between two samples.
 * An idle process is not sampled, because each sample wakes it: without samples, all values are 0.
 */
export class EventLoopLag {
  private readonly delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private last: LoopTimes;

  constructor(private readonly times: () => LoopTimes = () => performance.eventLoopUtilization()) {
    this.last = times();
  }

  get min(): number {
    return this.lagOf(this.delays.min);
  }

  get max(): number {
    return this.lagOf(this.delays.max);
  }

  get mean(): number {
    return this.lagOf(this.delays.mean);
  }

  get stddev(): number {
    return this.delays.count === 0 ? 0 : this.delays.stddev;
  }

  percentile(percentile: number): number {
    return this.lagOf(this.delays.percentile(percentile));
  }

  enable(): boolean {
    return this.delays.enable();
  }

  reset(): void {
    this.delays.reset();
  }

  /** Call it once per second: decides whether the next second is sampled. */
  look(): void {
    const { active, idle } = this.times();
    const [worked, rested] = [active - this.last.active, idle - this.last.idle];
    this.last = { active, idle };
    if (worked < IDLE * (worked + rested)) this.delays.disable();
    else this.delays.enable();
  }

  private lagOf(delay: number): number {
    return this.delays.count === 0 ? 0 : Math.max(0, delay - RESOLUTION_MS * 1e6);
  }
}
