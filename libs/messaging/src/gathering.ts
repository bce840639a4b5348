import type { Batch } from 'kafkajs';

/** A batch that ends this soon after a pause counts as one of the same fetch, in ms. */
const SAME_FETCH_MS = 5;

/**
 * A pause at the end of the topic in which records gather. Under a steady trickle, each fetch would return one record, and each
 * fetch has a cost at the broker, here and in the database. A record after a silence does not wait.
 */
export class Gathering {
  private restedAt = 0;

  /** How long a record may wait for others, in ms; 0: no pause. */
  constructor(private readonly ms: number) {}

  /** Call it after a batch: resolves when the next fetch is worthwhile. Once per fetch, not per partition of the fetch. */
  async rest(batch: Pick<Batch, 'highWatermark' | 'lastOffset'>): Promise<void> {
    const isAtEnd = Number(batch.lastOffset()) + 1 >= Number(batch.highWatermark);
    if (this.ms === 0 || !isAtEnd || performance.now() - this.restedAt < Math.min(this.ms, SAME_FETCH_MS)) return;
    await new Promise((resolve) => setTimeout(resolve, this.ms));
    this.restedAt = performance.now();
  }
}
