import { LRUCache } from 'lru-cache';
import { TokenBucket } from './token-bucket.js';

/** The number of webhooks whose rates are measured at a time. */
const LIMITED = 10_000;
/** Deliveries are taken for this share of a second at a time: each time costs several statements. */
const SHARE = 1 / 5;

/** Measures the rates of the webhooks that limit them. */
export class WebhookRates {
  private readonly buckets = new LRUCache<string, { rate: number; bucket: TokenBucket }>({ max: LIMITED });

  /** The number of deliveries that the webhook's rate, per second, allows now: at most `wanted`. Waits until it is a share of the rate, or `wanted`. */
  async take(webhookId: string, rate: number, wanted: number): Promise<number> {
    let kept = this.buckets.get(webhookId);
    if (kept?.rate !== rate) this.buckets.set(webhookId, (kept = { rate, bucket: new TokenBucket(rate, performance.now()) }));
    const least = Math.min(wanted, Math.max(1, Math.floor(rate * SHARE)));
    for (;;) {
      const tokens = kept.bucket.take(wanted, performance.now(), least);
      if (tokens > 0) return tokens;
      await new Promise((resolve) => setTimeout(resolve, kept.bucket.msTo(least)));
    }
  }

  /** How long the webhook must rest, in ms, until another replica, which begins with its whole rate, may take over. */
  msToRest(webhookId: string): number {
    return this.buckets.get(webhookId)?.bucket.msToFull(performance.now()) ?? 0;
  }

  /** These deliveries were not attempted. */
  giveBack(webhookId: string, deliveries: number): void {
    this.buckets.get(webhookId)?.bucket.giveBack(deliveries);
  }
}
