/** Where a partition can be taken up again: everything below `offset` is done; `clock` is that of the record just below. */
export interface Position {
  offset: number;
  clock: number;
}

/** Offsets of `from` and above, below `to`. */
export interface OffsetRange {
  from: number;
  to: number;
}

/** A position, and what has ended above it. */
export interface Progress extends Position {
  /** In ascending order. */
  ended: OffsetRange[];
}

/**
 * How far one partition is done: records begin in the order of the log and end in any. Below the low watermark all have
 * ended; with it what has ended above is committed, so that a crash repeats only what had not, and loses nothing.
 *
 * Offsets that the log has no record of (compaction, transaction markers) count as ended.
 */
export class Watermark {
  /** Records that have begun and not ended: the clock of the record before each by its offset, in ascending order. */
  private readonly open = new Map<number, number>();
  /** The offset that is expected next: lower ones have begun already. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;
  /** How many records have ended. */
  endings = 0;

  constructor(start: Position) {
    this.next = start.offset;
    this.clock = start.clock;
  }

  /** Registers the record at `offset` and answers how to say that it has ended. `timestamp` in ms is folded into the clock. */
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

  /** What may be committed. */
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

/** All of one partition that the one or the other knows to have ended. */
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
