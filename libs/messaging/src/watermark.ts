interface Entry {
  offset: number;
  clock: number;
  done: boolean;
}

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
 */
export class Watermark {
  private entries: Entry[] = [];
  private head = 0;
  private low: Position;
  /** The offset that is expected next: lower ones have begun already. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;
  /** How many records have ended. */
  endings = 0;

  constructor(start: Position) {
    this.low = start;
    this.next = start.offset;
    this.clock = start.clock;
  }

  /** Registers the record at `offset` and answers how to say that it has ended. `timestamp` in ms is folded into the clock. */
  begin(offset: number, timestamp: number): { clock: number; end: () => void } {
    if (offset < this.next) throw new Error(`offset ${offset} has begun already: ${this.next} is next`);
    this.clock = Math.max(this.clock, timestamp);
    this.next = offset + 1;
    const entry: Entry = { offset, clock: this.clock, done: false };
    this.entries.push(entry);
    return {
      clock: entry.clock,
      end: () => {
        entry.done = true;
        this.endings += 1;
        this.advance();
      },
    };
  }

  /** What may be committed. */
  progress(): Progress {
    // offsets can have gaps (compaction, transaction markers): with nothing outstanding all up to `next` is done
    if (this.outstanding === 0) return { offset: this.next, clock: this.clock, ended: [] };
    const ended: OffsetRange[] = [];
    let range: OffsetRange | undefined;
    for (let index = this.head; index < this.entries.length; index++) {
      const { offset, done } = this.entries[index] as Entry;
      if (!done) range = undefined;
      else if (range) range.to = offset + 1;
      else ended.push((range = { from: offset, to: offset + 1 }));
    }
    return { ...this.low, ended };
  }

  get outstanding(): number {
    return this.entries.length - this.head;
  }

  private advance(): void {
    let entry = this.entries[this.head];
    while (entry?.done) {
      this.low = { offset: entry.offset + 1, clock: entry.clock };
      this.head += 1;
      entry = this.entries[this.head];
    }
    if (this.head > 1024 && this.head * 2 > this.entries.length) {
      this.entries = this.entries.slice(this.head);
      this.head = 0;
    }
  }
}
