/** Where reading a partition can be resumed: everything below `offset` is done; `clock` is the clock of the record just below it. */
export interface Position {
  offset: number;
  clock: number;
}

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
 * Offsets without a record (compaction, transaction markers) count as done.
 */
export class Watermark {
  /** Unfinished records: the clock of the record before each, by offset, in ascending order. */
  private readonly open = new Map<number, number>();
  /** The next expected offset: lower ones have begun. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;
  /** The number of finished records. */
  endings = 0;

  constructor(start: Position) {
    this.next = start.offset;
    this.clock = start.clock;
  }

  /** Registers the record at `offset` and returns a function that marks it as done. `timestamp`, in ms, advances the clock. */
  begin(offset: number, timestamp: number): { clock: number; end: () => void } {
    if (offset < this.next) throw new Error(`offset ${offset} has begun already: ${this.next} is next`);
    this.open.set(offset, this.clock);
    this.clock = Math.max(this.clock, timestamp);
    this.next = offset + 1;
    return {
      clock: this.clock,
      end: () => {
        if (this.open.delete(offset)) this.endings += 1;
      },
    };
  }

  /** The progress to commit. */
  progress(): Progress {
    const low: Position = { offset: this.next, clock: this.clock };
    const ended: OffsetRange[] = [];
    let from: number | undefined;
    for (const [offset, clock] of this.open) {
      if (from === undefined) Object.assign(low, { offset, clock });
      else if (from < offset) ended.push({ from, to: offset });
      from = offset + 1;
    }
    if (from !== undefined && from < this.next) ended.push({ from, to: this.next });
    return { ...low, ended };
  }
}

/** All offsets of one partition that are done according to either argument. */
export function united(one: Progress, other: Progress): Progress {
  const ended: OffsetRange[] = [];
  for (const range of [...one.ended, ...other.ended].sort((a, b) => a.from - b.from)) {
    const last = ended.at(-1);
    if (last && range.from <= last.to) last.to = Math.max(last.to, range.to);
    else ended.push({ ...range });
  }
  const { offset, clock } = one.offset > other.offset ? one : other;
  return { offset, clock, ended: ended.flatMap(({ from, to }) => (to > offset ? [{ from: Math.max(from, offset), to }] : [])) };
}
