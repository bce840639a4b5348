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

  /** Takes up to `wanted` tokens, or none if there are fewer than `least`. Returns how many it took. */
  take(wanted: number, nowMs: number, least = 1): number {
    this.tokens = Math.min(this.perSecond, this.tokens + ((nowMs - this.filledAt) * this.perSecond) / 1000);
    this.filledAt = nowMs;
    const taken = this.tokens < least ? 0 : Math.min(wanted, Math.floor(this.tokens));
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

  /** Until as many tokens are available, in ms. */
  msTo(tokens: number): number {
    return Math.max(0, Math.ceil(((tokens - this.tokens) * 1000) / this.perSecond));
  }
}
