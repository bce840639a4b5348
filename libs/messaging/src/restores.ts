import type { PartitionProgress } from './lane-intake.js';
import type { Position } from './watermark.js';

/** The position of a consumer group in a partition. */
export interface GroupPosition extends Position {
  group: string;
  topic: string;
  partition: number;
}

/**
 * Recognises a database that was restored to an older state while Kafka continued: the effects of records that the group has committed are gone. The
 * database has a counter that only grows, and each commit contains it. The database also has the group's position, at most a second old: if the commit
 * contains a higher number than the database, that position is the one that belongs to the database, and reading resumes there.
 */
export interface Restores {
  /** The last known number. */
  readonly ticks: number;
  /** The position in the database, if the database is older than a commit with this number. undefined: the commit is valid. */
  positionFor(at: { group: string; topic: string; partition: number }, ticks: number): Promise<Position | undefined>;
}

/** Without a database. */
export const NO_RESTORES: Restores = { ticks: 0, positionFor: () => Promise.resolve(undefined) };

/** The progress that a group has committed, with the number of the database at that time. */
export type Committed = PartitionProgress & { ticks?: number };
