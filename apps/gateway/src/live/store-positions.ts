import { Injectable } from '@nestjs/common';
import { type EmitterId, getStoredPositions, type StoredPosition } from '#contracts';
import { Messages, partitionOf } from '#messaging';
import type { Seam } from './live-hub.js';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
/** How long to wait for other partitions: they have events of the emitter only if a producer writes these without a key, or with another partitioner. */
const OTHERS_WITHIN_MS = 2000;

/** The positions of the store. At most one request is in progress, however many clients wait. */
@Injectable()
export class StorePositions {
  private known = new Map<number, number>();
  private asking: Promise<StoredPosition[]> | undefined;

  constructor(private readonly messages: Messages) {}

  /** Requests the positions from the store. */
  read(): Promise<StoredPosition[]> {
    this.asking ??= this.messages
      .request(getStoredPositions, {}, { key: 'events' })
      .then((positions) => {
        this.known = new Map(positions.map(({ partition, offset }) => [partition, offset]));
        return positions;
      })
      .finally(() => (this.asking = undefined));
    return this.asking;
  }

  /**
   * Resolves when the store has processed all records below the seam, or at least those of the emitter's partition after two seconds: a partition that is
   * behind does not hold up the emitters of others. Rejects if the store is unavailable or the signal aborts.
   */
  async reached(seam: Seam, emitterId: EmitterId, signal: AbortSignal): Promise<void> {
    const until = performance.now() + OTHERS_WITHIN_MS;
    const own = partitionOf(emitterId, 1 + Math.max(-1, ...seam.keys()));
    const isThere = () =>
      [...seam].every(
        ([partition, { offset }]) => (this.known.get(partition) ?? 0) >= offset || (partition !== own && performance.now() >= until),
      );
    for (let pause = FIRST_PAUSE_MS; !isThere(); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await this.read();
      if (isThere()) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
      signal.throwIfAborted();
    }
  }
}
