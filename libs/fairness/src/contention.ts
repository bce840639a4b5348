import { MainThreadClock, type MainThreadTimes } from '#observability';

/** A thread that runs for more than this share of the time has work waiting for it, however many processors are free. */
const FULL = 0.85;

/**
 * How short of processors this process is, as the kernel accounts for it. Unlike the machine's load, it does not count what others do on processors that
 * this process does not need.
 */
export class Contention {
  private readonly clock = new MainThreadClock(process.pid);
  private before = this.clock.read();
  private at = performance.now();

  /** The share of the time since the last call that the main thread waited for a processor, from 0 to 1; 0 where it is unknown, 1 if it ran all the time. */
  sample(): number {
    const [before, beforeAt] = [this.before, this.at];
    this.before = this.clock.read();
    this.at = performance.now();
    if (!before || !this.before) return 0;
    return contention({ ran: this.before.ran - before.ran, waited: this.before.waited - before.waited }, this.at - beforeAt);
  }
}

export function contention({ ran, waited }: MainThreadTimes, elapsed: number): number {
  if (elapsed <= 0) return 0;
  return ran > FULL * elapsed ? 1 : waited / elapsed;
}
