/** Where reading a partition can be resumed: everything below `offset` is done; `clock` is the clock of the record just below it. */
export interface Position {
  offset: number;
  clock: number;
  /** The timestamp of the record just below `offset`, in ms. It identifies the log; undefined if it is unknown. */
  timestamp?: number;
}

/** How far a clock may be ahead of this machine. */
export const AHEAD_MS = 5 * 60_000;

/**
 * The clock after a record: its timestamp, made monotonic. A clock that is more than five minutes ahead comes from a record with a wrong timestamp and
 * is not kept: it would hide all later events. `now` is this machine's time, which decides only whether the clock is plausible, so that all readers
 * compute the same one.
 */
export const clockAfter = (clock: number, timestamp: number, now = Date.now()): number =>
  clock > now + AHEAD_MS ? timestamp : Math.max(clock, timestamp);

/** The offsets from `from`, inclusive, to `to`, exclusive. */
export interface OffsetRange {
  from: number;
  to: number;
}

/** A position, and the records above it that are done. */
export interface Progress extends Position {
  /** In ascending order. */
  ended: OffsetRange[];
}

/**
 * The progress of one partition. Records begin in order and end in any order. All records below the low watermark are
 * done; the finished records above it are committed with it, so that a crash repeats only unfinished work and loses nothing.
 *
 * Offsets without a record (compaction, transaction markers, retention) need no work.
 */
export class Watermark {
  /** Unfinished records by offset, in ascending order: the position behind the record before each. */
  private readonly open = new Map<number, Position>();
  /** The next expected offset: lower ones have begun. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;
  private timestamp: number | undefined;
  /** The number of finished records. */
  finished = 0;

  constructor(start: Position) {
    this.next = start.offset;
    this.clock = start.clock;
    this.timestamp = start.timestamp;
  }

  /** Whether every record that has begun is done. */
  get isDone(): boolean {
    return this.open.size === 0;
  }

  /** Registers the record at `offset` and returns a function that marks it as done. `timestamp`, in ms, advances the clock. */
  begin(offset: number, timestamp: number): { clock: number; end: () => void } {
    if (offset < this.next) throw new Error(`offset ${offset} has begun already: ${this.next} is next`);
    // not at `offset`: if there is a gap, the record that identifies the log is below it
    this.open.set(offset, { offset: this.next, clock: this.clock, timestamp: this.timestamp });
    this.clock = clockAfter(this.clock, timestamp);
    this.timestamp = timestamp;
    this.next = offset + 1;
    return {
      clock: this.clock,
      end: () => {
        if (this.open.delete(offset)) this.finished += 1;
      },
    };
  }

  /** The progress to commit. */
  progress(): Progress {
    const low: Position = { offset: this.next, clock: this.clock, timestamp: this.timestamp };
    const ended: OffsetRange[] = [];
    let from: number | undefined;
    for (const [offset, before] of this.open) {
      if (from === undefined) Object.assign(low, before);
      else if (from < offset) ended.push({ from, to: offset });
      from = offset + 1;
    }
    if (from !== undefined && from < this.next) ended.push({ from, to: this.next });
    // without a record below the position, nothing shows that they belong to the same log
    return { ...low, ended: low.timestamp === undefined ? [] : ended };
  }
}

/** All offsets of one partition that are done according to either argument. */
export function union(one: Progress, other: Progress): Progress {
  const ended: OffsetRange[] = [];
  for (const range of [...one.ended, ...other.ended].sort((a, b) => a.from - b.from)) {
    const last = ended.at(-1);
    if (last && range.from <= last.to) last.to = Math.max(last.to, range.to);
    else ended.push({ ...range });
  }
  const { offset, clock, timestamp } = one.offset > other.offset ? one : other;
  return { offset, clock, timestamp, ended: ended.flatMap(({ from, to }) => (to > offset ? [{ from: Math.max(from, offset), to }] : [])) };
}
