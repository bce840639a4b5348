import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { RunRequest } from '#contracts';
import { Consumers, type Task } from '#messaging';

/** The consumer group of the runs. */
export const RUNS_GROUP = 'runs';

/** Which lane a run goes into: one of its source, or of `concurrency: n` one of n in turn. A hook is the next run of its lane. */
@Injectable()
export class RunLanes {
  /** The number of the last lane of a source whose runs may overlap. */
  private readonly last = new LRUCache<string, number>({ max: 100_000 });

  constructor(private readonly consumers: Consumers) {}

  /** The lane, and the account as its group. @param atATime how many runs of the source may be in progress */
  laneOf(
    { source_id, owner_id, hook }: Pick<RunRequest, 'source_id' | 'owner_id' | 'hook'>,
    atATime: number,
  ): Pick<Task, 'lane' | 'group' | 'isUrgent'> {
    if (hook) return { lane: source_id, group: owner_id, isUrgent: true };
    if (atATime <= 1) return { lane: source_id, group: owner_id };
    const next = ((this.last.get(source_id) ?? 0) + 1) % atATime;
    this.last.set(source_id, next);
    return { lane: next === 0 ? source_id : `${source_id}#${next}`, group: owner_id };
  }

  /** Executes a run that this process requests itself, in turn with the runs of its source from Kafka. */
  executeHere<T>(run: RunRequest, atATime: number, execute: (release: () => void) => Promise<T>): Promise<T> {
    return this.consumers.runInLane(RUNS_GROUP, this.laneOf(run, atATime), execute);
  }
}
