/** The waiting continue together: waking up for each would take longer than what it waits for. */
const batchMs = 20;

/** Lets something happen this often per second, and as often at once after a second without any. Callers that come too early wait in order. */
export class Turns {
  private readonly waiters: (() => void)[] = [];
  private free: number;
  private filledAt = performance.now();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly perSecond: number) {
    this.free = perSecond;
  }

  /** Calls `begin` when its turn has come, which may be at once. */
  take(begin: () => void): void {
    this.fill();
    if (this.waiters.length === 0 && this.free >= 1) {
      this.free--;
      return begin();
    }
    this.waiters.push(begin);
    this.timer ??= setTimeout(() => this.beginBatch(), batchMs);
  }

  private beginBatch(): void {
    this.timer = undefined;
    this.fill();
    const batch = this.waiters.splice(0, Math.floor(this.free));
    this.free -= batch.length;
    if (this.waiters.length > 0) this.timer = setTimeout(() => this.beginBatch(), batchMs);
    for (const begin of batch) begin();
  }

  private fill(): void {
    const now = performance.now();
    this.free = Math.min(this.perSecond, this.free + ((now - this.filledAt) * this.perSecond) / 1000);
    this.filledAt = now;
  }
}
