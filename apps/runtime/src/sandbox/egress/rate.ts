/** A token bucket: this many per minute on average, and at most this many at once. */
export class Rate {
  private tokens: number;
  private at = performance.now();

  constructor(private readonly perMinute: number) {
    this.tokens = perMinute;
  }

  allows(): boolean {
    const now = performance.now();
    this.tokens = Math.min(this.perMinute, this.tokens + ((now - this.at) * this.perMinute) / 60_000);
    this.at = now;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}
