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
 * The clock after a record: its timestamp, made monotonic. A clock that is more than five minutes ahead of `now`, this machine's time, comes from a record
 * with a wrong timestamp and is not kept: it would hide all later events. A reader that is so late that the clock is plausible by then keeps it, and computes
 * another clock than the readers before it. Two timestamps alone cannot show which of them is wrong: see ADR 17.
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
 * Offsets without a visible record (compaction, transaction markers, retention) need no work.
 */
export class Watermark {
  /** Unfinished records by offset, in ascending order: the position behind the record before each, and when it has begun. */
  private readonly open = new Map<number, { before: Position; since: number }>();
  /** The next expected offset: lower ones have begun. */
  next: number;
  /** The clock of the newest record that has begun. */
  clock: number;
  private timestamp: number | undefined;
  /** The number of finished records, and of times that hidden ones were skipped. */
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

  /** When the first record that is not done has begun, by performance.now(). */
  get undoneSince(): number | undefined {
    const [first] = this.open.values();
    return first?.since;
  }

  /** The offsets of the records that are not done, in ascending order, and at last the next expected one. Unlike `progress`, it leaves out offsets without a visible record. */
  get undone(): number[] {
    return [...this.open.keys(), this.next];
  }

  /** Registers the record at `offset` and returns a function that marks it as done. `timestamp`, in ms, advances the clock. */
  begin(offset: number, timestamp: number): () => void {
    if (offset < this.next) throw new Error(`offset ${offset} has begun already: ${this.next} is next`);
    // not at `offset`: if there is a gap, the record that identifies the log is below it
    const before = { offset: this.next, clock: this.clock, timestamp: this.timestamp };
    this.open.set(offset, { before, since: performance.now() });
    this.clock = clockAfter(this.clock, timestamp);
    this.timestamp = timestamp;
    this.next = offset + 1;
    return () => {
      if (this.open.delete(offset)) this.finished += 1;
    };
  }

  /** The records from `next` on to `offset`, exclusive, are hidden. `timestamp`: of the last of them, which identifies the log. */
  skip({ offset, timestamp }: { offset: number; timestamp: number }): void {
    if (offset <= this.next) return;
    this.next = offset;
    this.timestamp = timestamp;
    this.finished += 1;
  }

  /** Every record below it is done. */
  get position(): Position {
    const [first] = this.open.values();
    return first?.before ?? { offset: this.next, clock: this.clock, timestamp: this.timestamp };
  }

  /** The progress to commit. */
  progress(): Progress {
    const low = this.position;
    const ended: OffsetRange[] = [];
    let from: number | undefined;
    for (const offset of this.open.keys()) {
      if (from !== undefined && from < offset) ended.push({ from, to: offset });
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

/** Kafka limits the metadata of a commit to 4096 characters: 3867 bytes in base64url, after the numbers before them. */
const MAX_BYTES = 2900;

/**
 * The metadata of a commit, separated by spaces: the clock; the offset again; the lengths of the runs from there on, alternating between
 * unfinished and finished records, as varints in base64url; the timestamp that identifies the log; the time that identifies the state of the database
 * (restores.ts). Runs beyond the limit are omitted; their records would be repeated.
 */
export function progressMetadata({ offset, clock, timestamp, ended }: Progress, databaseMs = 0): string {
  const bytes: number[] = [];
  let at = offset;
  for (const { from, to } of ended) {
    const run = [...varint(from - at), ...varint(to - from)];
    if (bytes.length + run.length > MAX_BYTES) break;
    bytes.push(...run);
    at = to;
  }
  return `${clock} ${offset} ${Buffer.from(bytes).toString('base64url')} ${timestamp ?? ''} ${databaseMs || ''}`.trimEnd();
}

/** Reads a commit: `offset` is negative if there is none, and `metadata` may come from any tool. */
export function committedProgress(offset: number, metadata: string | null): Progress & { databaseMs?: number } {
  const [clock = '', base, runs = '', timestamp = '', databaseMs = ''] = (metadata ?? '').split(' ', 5);
  const low = Math.max(0, offset);
  const ended: OffsetRange[] = [];
  let at = low;
  // if a tool has moved the offset and copied the metadata, the rest does not apply
  const applies = base === String(low);
  const lengths = applies ? numbers(Buffer.from(runs, 'base64url')) : [];
  for (let index = 0; index + 1 < lengths.length; index += 2) {
    const from = at + (lengths[index] as number);
    at = from + (lengths[index + 1] as number);
    ended.push({ from, to: at });
  }
  return {
    offset: low,
    clock: Number(clock) || 0,
    timestamp: applies ? Number(timestamp) || undefined : undefined,
    ended,
    databaseMs: applies ? Number(databaseMs) || undefined : undefined,
  };
}

/** Seven bits per byte, lowest first; all bytes but the last have the eighth bit set. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 0x7f; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}

function numbers(bytes: Buffer): number[] {
  const values: number[] = [];
  let [value, scale] = [0, 1];
  for (const byte of bytes) {
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (byte & 0x80) continue;
    values.push(value);
    [value, scale] = [0, 1];
  }
  return values;
}
