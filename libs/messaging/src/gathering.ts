import type { Batch } from 'kafkajs';

/**
 * A rest at the end of the log in which records gather: under a steady trickle each fetch would bring one record, and each
 * fetch has its price at the broker, here and where its records are written. What comes after a silence doesn't wait.
 */
export class Gathering {
  private restedAt = 0;

  /** How long a record may wait for others, in ms; 0: not at all. */
  constructor(private readonly ms: number) {}

  /** After a batch was taken: returns when the next fetch is worth while. Once per fetch, not for each partition that it brought. */
  async rest(batch: Pick<Batch, 'highWatermark' | 'lastOffset'>): Promise<void> {
    const isAtEnd = Number(batch.lastOffset()) + 1 >= Number(batch.highWatermark);
    if (this.ms === 0 || !isAtEnd || performance.now() - this.restedAt < this.ms) return;
    await new Promise((resolve) => setTimeout(resolve, this.ms));
    this.restedAt = performance.now();
  }
}
