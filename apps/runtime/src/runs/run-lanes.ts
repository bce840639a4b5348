import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { RunRequest } from '#contracts';
import { Consumers } from '#messaging';

/** The consumer group of the runs. */
export const RUNS_GROUP = 'runs';

/** Which lane a run goes into: one of its source, or of `concurrency: n` one of n in turn. */
@Injectable()
export class RunLanes {
  private readonly concurrency = new LRUCache<string, { lanes: number; next: number }>({ max: 100_000 });

  constructor(private readonly consumers: Consumers) {}

  /** From the source's component. Known after its first run, which runs alone in any case. */
  learn(sourceId: string, concurrency: number): void {
    if (concurrency <= 1) this.concurrency.delete(sourceId);
    else if (this.concurrency.get(sourceId)?.lanes !== concurrency) this.concurrency.set(sourceId, { lanes: concurrency, next: 0 });
  }

  /** The lane, and the account as its group. */
  laneOf({ source_id, owner_id, hook }: RunRequest): { lane: string; group: string } {
    const turn = hook ? undefined : this.concurrency.get(source_id);
    if (!turn) return { lane: source_id, group: owner_id };
    turn.next = (turn.next + 1) % turn.lanes;
    return { lane: turn.next === 0 ? source_id : `${source_id}#${turn.next}`, group: owner_id };
  }

  /** Executes a run that this process requests itself, in turn with the runs of its source from Kafka. */
  executeHere<T>(run: RunRequest, execute: (release: () => void) => Promise<T>): Promise<T> {
    return this.consumers.runInLane(RUNS_GROUP, this.laneOf(run), execute);
  }
}
