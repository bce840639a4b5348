/** Allows a number of deliveries per second, and the same number at once after a pause. */
export class TokenBucket {
  private tokens: number;
  private filledAt: number;

  constructor(
    private readonly perSecond: number,
    nowMs: number,
  ) {
    this.tokens = perSecond;
    this.filledAt = nowMs;
  }

  /** Takes up to `wanted` tokens. Returns how many it took. */
  take(wanted: number, nowMs: number): number {
    this.tokens = Math.min(this.perSecond, this.tokens + ((nowMs - this.filledAt) * this.perSecond) / 1000);
    this.filledAt = nowMs;
    const taken = Math.min(wanted, Math.floor(this.tokens));
    this.tokens -= taken;
    return taken;
  }

  /** Returns unused tokens to the bucket. */
  giveBack(tokens: number): void {
    this.tokens = Math.min(this.perSecond, this.tokens + tokens);
  }

  /** Until it is full again, in ms. */
  msToFull(nowMs: number): number {
    return Math.max(0, ((this.perSecond - this.tokens) * 1000) / this.perSecond - (nowMs - this.filledAt));
  }

  /** Until a token is available, in ms. */
  get waitMs(): number {
    return this.tokens >= 1 ? 0 : Math.ceil(((1 - this.tokens) * 1000) / this.perSecond);
  }
}
