import { LRUCache } from 'lru-cache';

/** A source's list of runs is trimmed after as many runs. */
const EVERY = 50;
const SOURCES = 10_000;

/** Counts the runs of sources, so that their lists are trimmed periodically and not after each run. */
export class TrimCounter {
  private readonly since = new LRUCache<string, number>({ max: SOURCES });

  isDue(sourceId: string): boolean {
    // an unknown source is due at once, because a restart loses the counts
    const count = (this.since.get(sourceId) ?? EVERY) + 1;
    this.since.set(sourceId, count > EVERY ? 1 : count);
    return count > EVERY;
  }

  /** The trim failed. */
  again(sourceId: string): void {
    this.since.delete(sourceId);
  }
}
