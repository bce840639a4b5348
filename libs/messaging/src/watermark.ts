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

/**
 * The low watermark of one partition: records begin in the order of the log and end in any; below the watermark all
 * have ended. Only the watermark may be committed: a crash then repeats what was above it and loses nothing.
 */
export class Watermark {
  private entries: Entry[] = [];
  private head = 0;
  private low: Position;
  /** The offset that is expected next: lower ones have begun already. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;

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
        this.advance();
      },
    };
  }

  /** What may be committed. */
  position(): Position {
    // offsets can have gaps (compaction, transaction markers): with nothing outstanding all up to `next` is done
    return this.outstanding === 0 ? { offset: this.next, clock: this.clock } : this.low;
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
