/** Consecutive failures of different events after which the receiver counts as failing, rather than the events. */
const FAILURES = 5;
/** A repeated failure of the same event is weaker evidence: the event itself may be the reason. */
const FAILURES_AGAIN = 20;
/** A time-out occupies a lane for its whole duration, so two are enough. */
const TIMEOUTS = 2;
/** Older failures say nothing about the receiver now. A webhook that has no further deliveries would otherwise be remembered until the process ends. */
const REMEMBERED_MS = 3_600_000;

export interface Failure {
  eventId: string;
  timeout: boolean;
  /** The event failed before, and the receiver responded, so it is reachable. */
  again: boolean;
}

/** Distinguishes a failing receiver from an event that the receiver rejects, by the failures since the last success. */
export class Breaker {
  private readonly failed = new Set<string>();
  private readonly failedAgain = new Set<string>();
  private timeouts = 0;
  private failedAt = -Infinity;

  /** No failure since the last success. */
  get untroubled(): boolean {
    return this.failed.size === 0 && this.failedAgain.size === 0;
  }

  /** Whether all failures since the last success are old. */
  get forgettable(): boolean {
    return this.untroubled || performance.now() - this.failedAt > REMEMBERED_MS;
  }

  /** After a success. */
  reset(): void {
    if (this.untroubled) return;
    this.failed.clear();
    this.failedAgain.clear();
    this.timeouts = 0;
  }

  failedWith({ eventId, timeout, again }: Failure): void {
    (again ? this.failedAgain : this.failed).add(eventId);
    if (timeout) this.timeouts += 1;
    this.failedAt = performance.now();
  }

  get open(): boolean {
    return this.failed.size >= FAILURES || this.failedAgain.size >= FAILURES_AGAIN || this.timeouts >= TIMEOUTS;
  }
}
