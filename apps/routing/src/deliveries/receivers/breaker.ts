/** Failures in a row, of different events, after which the endpoint is taken to fail and not the events. */
const FAILURES = 5;
/** An event that has failed before and is refused again says less: it may be the event. */
const FAILURES_AGAIN = 20;
/** A time-out costs a lane for as long as it takes: two are enough. */
const TIMEOUTS = 2;

export interface Failure {
  eventId: string;
  timeout: boolean;
  /** It has failed before, and the endpoint has answered: it's there. */
  again: boolean;
}

/** Tells an endpoint that fails from an event that does. What counts is the streak since the last success. */
export class Breaker {
  private readonly failed = new Set<string>();
  private readonly failedAgain = new Set<string>();
  private timeouts = 0;

  /** No failure since the last success. */
  get untroubled(): boolean {
    return this.failed.size === 0 && this.failedAgain.size === 0;
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
  }

  get open(): boolean {
    return this.failed.size >= FAILURES || this.failedAgain.size >= FAILURES_AGAIN || this.timeouts >= TIMEOUTS;
  }
}
