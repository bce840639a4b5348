import { Injectable } from '@nestjs/common';
import { type EmitterId, getStoredPositions, type StoredPosition, Unavailable } from '#contracts';
import { Messages, partitionOf, type Position } from '#messaging';
import type { Seam } from './live-hub.js';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
/** How long to wait for other partitions: they have events of the emitter only if a producer writes these without a key, or with another partitioner. */
const OTHERS_WITHIN_MS = 2000;
/** After that, the client has to resume at another seam: the store never reaches one of a log that was lost, if the new log has earlier clocks. */
const REACHED_WITHIN_MS = 60_000;

/** The positions of the store. At most one request is in progress, however many clients wait. */
@Injectable()
export class StorePositions {
  private known = new Map<number, StoredPosition>();
  private asking: Promise<StoredPosition[]> | undefined;

  constructor(private readonly messages: Messages) {}

  /** Requests the positions from the store. */
  read(): Promise<StoredPosition[]> {
    this.asking ??= this.messages
      .request(getStoredPositions, {}, { account: null, key: 'events' })
      .then((positions) => {
        this.known = new Map(positions.map((position) => [position.partition, position]));
        return positions;
      })
      .finally(() => (this.asking = undefined));
    return this.asking;
  }

  /**
   * Resolves when the store has processed all records below the seam, or at least those of the emitter's partition after two seconds: a partition that is
   * behind does not hold up the emitters of others. Reads the positions again for each client, because the store may have been restored to an earlier state.
   * Rejects if the store is unavailable or a minute behind, or the signal aborts.
   */
  async reached(seam: Seam, emitterId: EmitterId, signal: AbortSignal): Promise<void> {
    const begun = performance.now();
    const own = partitionOf(emitterId, 1 + Math.max(-1, ...seam.keys()));
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      await this.read();
      const waitedMs = performance.now() - begun;
      const isBlocking = (partition: number) => partition === own || waitedMs < OTHERS_WITHIN_MS;
      if (![...seam].some(([partition, at]) => isBehind(this.known.get(partition), at) && isBlocking(partition))) return;
      if (waitedMs >= REACHED_WITHIN_MS) throw new Unavailable('the event store is behind');
      await new Promise((resolve) => setTimeout(resolve, pause));
      signal.throwIfAborted();
    }
  }
}

/**
 * Within a log, offsets and clocks ascend together, unless a reader drops a clock that was far ahead (ADR 17). The clocks of another log that replaces it are
 * later, while its offsets begin at 0.
 */
const isBehind = (
  position: Pick<Position, 'offset' | 'clock'> = { offset: 0, clock: 0 },
  { offset, clock }: Pick<Position, 'offset' | 'clock'>,
): boolean => position.clock < clock || (position.clock === clock && position.offset < offset);
