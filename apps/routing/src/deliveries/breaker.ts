/** Failures in a row, of different events, after which the endpoint is taken to fail and not the events. */
const FAILURES = 5;
/** A time-out costs a lane for as long as it takes: two are enough. */
const TIMEOUTS = 2;

/** Tells an endpoint that fails from an event that does. What counts is the streak since the last success. */
export class Breaker {
  private readonly failed = new Set<string>();
  private timeouts = 0;

  /** No failure since the last success. */
  get untroubled(): boolean {
    return this.failed.size === 0;
  }

  /** After a success. */
  reset(): void {
    if (this.failed.size === 0) return;
    this.failed.clear();
    this.timeouts = 0;
  }

  failedWith(eventId: string, timeout: boolean): void {
    if (this.failed.size < FAILURES) this.failed.add(eventId);
    if (timeout) this.timeouts += 1;
  }

  get open(): boolean {
    return this.failed.size >= FAILURES || this.timeouts >= TIMEOUTS;
  }
}
