/** How many surplus events a stream may have before they are deleted. Deleting them one by one costs three times as much. */
export const SLACK = 100;

const COUNTED_STREAMS = 200_000;

/**
 * Decides when a stream is trimmed: after every SLACK events. It only has to be right on average, because surplus events are never shown. A stream that
 * it does not know, after a start or because there are too many, begins at a random count.
 */
export class TrimCounter {
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly random: () => number = Math.random,
    private readonly capacity = COUNTED_STREAMS,
  ) {}

  /** Counts one event; true when the stream is due, which starts its count again. */
  isDue(stream: string): boolean {
    const count = (this.counts.get(stream) ?? this.startCounting()) + 1;
    this.counts.set(stream, count < SLACK ? count : 0);
    return count >= SLACK;
  }

  private startCounting(): number {
    if (this.counts.size >= this.capacity) {
      const oldest = this.counts.keys().next();
      if (!oldest.done) this.counts.delete(oldest.value);
    }
    return Math.floor(this.random() * SLACK);
  }
}
