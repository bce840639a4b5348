import { LRUCache } from 'lru-cache';
import { TokenBucket } from './token-bucket.js';

/** The number of webhooks whose rates are measured at a time. */
const LIMITED = 10_000;

/** Measures the rates of the webhooks that limit them. */
export class WebhookRates {
  private readonly buckets = new LRUCache<string, { rate: number; bucket: TokenBucket }>({ max: LIMITED });

  /** The number of deliveries that the webhook's rate, per second, allows now: at most `wanted`. Waits until it is at least one. */
  async take(webhookId: string, rate: number, wanted: number): Promise<number> {
    let kept = this.buckets.get(webhookId);
    if (kept?.rate !== rate) this.buckets.set(webhookId, (kept = { rate, bucket: new TokenBucket(rate, performance.now()) }));
    for (;;) {
      const tokens = kept.bucket.take(wanted, performance.now());
      if (tokens > 0) return tokens;
      await new Promise((resolve) => setTimeout(resolve, kept.bucket.waitMs));
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
