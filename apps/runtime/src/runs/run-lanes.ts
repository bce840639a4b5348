import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { RunRequested } from '#contracts';

/** Which lane a run goes into: one of its source, or of `concurrency: n` one of n in turn. */
@Injectable()
export class RunLanes {
  private readonly concurrency = new LRUCache<string, { lanes: number; next: number }>({ max: 100_000 });

  /** What the source's component says; known after its first run, which is alone all the same. */
  learn(sourceId: string, concurrency: number): void {
    if (concurrency <= 1) this.concurrency.delete(sourceId);
    else if (this.concurrency.get(sourceId)?.lanes !== concurrency) this.concurrency.set(sourceId, { lanes: concurrency, next: 0 });
  }

  laneOf({ source_id, hook }: RunRequested): string {
    const turn = hook ? undefined : this.concurrency.get(source_id);
    if (!turn) return source_id;
    turn.next = (turn.next + 1) % turn.lanes;
    return turn.next === 0 ? source_id : `${source_id}#${turn.next}`;
  }
}
