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
 * database has the periods for which processes have used it, and each commit contains the end of such a period. The database also has the group's
 * position, at most a second old: if no period contains the time of the commit, that position is the one that belongs to the database, and reading
 * resumes there.
 */
export interface Restores {
  /** The end of the period of this process, in ms. */
  readonly databaseMs: number;
  /** The position in the database, if it does not know a commit with this time. undefined: the commit is valid. */
  positionFor(at: { group: string; topic: string; partition: number }, databaseMs: number): Promise<Position | undefined>;
  /** The position in the database, for a group without a commit: the brokers have lost it, or deleted it because the group was idle for long. */
  storedPosition(at: { group: string; topic: string; partition: number }): Promise<Position | undefined>;
  /**
   * The consumer is about to commit for the last time and to leave its group: stores its positions, and makes the time of the database a later one than that
   * of their effects. Does not throw, and takes a second at most.
   */
  beforeLeaving(): Promise<void>;
  /** All consumers have left their groups: the period of the process ends. */
  stop(): Promise<void>;
}

/** Without a database. */
export const NO_RESTORES: Restores = {
  databaseMs: 0,
  positionFor: () => Promise.resolve(undefined),
  storedPosition: () => Promise.resolve(undefined),
  beforeLeaving: () => Promise.resolve(),
  stop: () => Promise.resolve(),
};

/** The progress that a group has committed, with the time of the database. `isMissing`: it has committed nothing. */
export type Committed = PartitionProgress & { databaseMs?: number; isMissing: boolean };
