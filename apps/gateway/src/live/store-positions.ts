import { Injectable } from '@nestjs/common';
import { getStoredPositions, type StoredPosition } from '#contracts';
import { Messages } from '#messaging';
import type { Seam } from './live-hub.js';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;

/** How far the store is. However many wait for it, it's asked by one at a time. */
@Injectable()
export class StorePositions {
  private known = new Map<number, number>();
  private asking: Promise<StoredPosition[]> | undefined;

  constructor(private readonly messages: Messages) {}

  /** Asks the store. */
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

  /** Resolves when the store has taken in all below the seam; rejects when it can't be asked, or the signal says to stop. */
  async reached(seam: Seam, signal: AbortSignal): Promise<void> {
    const isThere = () => [...seam].every(([partition, offset]) => (this.known.get(partition) ?? 0) >= offset);
    for (let pause = FIRST_PAUSE_MS; !isThere(); pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await this.read();
      if (isThere()) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
      signal.throwIfAborted();
    }
  }
}
