/** A live stream, as its account sees it. */
export interface Stream {
  /** Writes the first frame that waits for a turn. @returns its bytes, and whether others wait */
  writeNext(): { bytes: number; more: boolean };
  /** Closes the connection at once and releases what it holds. */
  cutOff(): void;
}

/** Of the frames that the streams of one account hold, with the objects for them. They must not fill the memory. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Of the objects for a frame, however many streams hold it. An event can have 200 bytes: its objects need more memory than its frame. */
const FRAME_OBJECT_BYTES = 256;
/** Of the entries for a frame in the queue and the map of each stream that holds it. */
const STREAM_ENTRY_BYTES = 64;
/** The number of emits that all streams of an account remember together, with 24 to 36 bytes for each. */
const MAX_EMITS = 250_000;
/** The number of emits that one stream remembers: `*` covers any number of streams of an emitter. */
export const MAX_EMITS_OF_ONE = 1000;
/** Of Node's objects for a frame that was written and not yet sent. */
const WRITE_OBJECT_BYTES = 384;
/** Of the frames that are written for one account in one turn of the event loop: about a millisecond of the main thread. */
const BYTES_PER_TURN = 1024 * 1024;
/** A frame costs as much in addition to its bytes. */
const FRAME_COST = 16 * 1024;

/**
 * The live streams of one account share a part of the memory and of the main thread: an account can have thousands of streams, and an event for all of
 * them can have a megabyte.
 *
 *   they hold too many bytes ─► the stream that has sent nothing for the longest time is cut off
 *   they have written as much as may be written in a turn ─► the next frames wait for the next turn, one of each stream at a time
 */
export class AccountStreams {
  private bytes = 0;
  private streams = 0;
  /** A frame that several streams hold is in memory once. */
  private readonly frames = new Map<Buffer, number>();
  /** Those that hold frames; the one that has sent nothing for the longest time is the first. */
  private readonly holders = new Map<Stream, number>();
  private readonly waiting = new Set<Stream>();
  private left = BYTES_PER_TURN;
  private turn: NodeJS.Immediate | undefined;

  constructor(private readonly maxBytes = MAX_BYTES) {}

  get isUnused(): boolean {
    return this.streams === 0;
  }

  /** The number of emits that each stream may remember now. */
  get emitsOfEach(): number {
    return Math.min(MAX_EMITS_OF_ONE, Math.floor(MAX_EMITS / this.streams));
  }

  /** A stream begins; it leaves when it is closed. */
  join(): void {
    this.streams++;
  }

  leave(): void {
    this.streams--;
  }

  /** Counts a frame that the stream holds until it is released. May cut off streams. */
  hold(stream: Stream, frame: Buffer): void {
    const times = this.frames.get(frame) ?? 0;
    this.frames.set(frame, times + 1);
    if (times === 0) this.bytes += frame.length + FRAME_OBJECT_BYTES;
    this.holders.set(stream, (this.holders.get(stream) ?? 0) + 1);
    this.add(STREAM_ENTRY_BYTES);
  }

  /** The stream has sent a frame that it held, or has dropped it. */
  release(stream: Stream, frame: Buffer): void {
    const times = this.frames.get(frame)! - 1;
    if (times > 0) this.frames.set(frame, times);
    else {
      this.frames.delete(frame);
      this.bytes -= frame.length + FRAME_OBJECT_BYTES;
    }
    this.bytes -= STREAM_ENTRY_BYTES;
    const held = this.holders.get(stream)! - 1;
    // it becomes the last one
    this.holders.delete(stream);
    if (held > 0) this.holders.set(stream, held);
  }

  /** A stream has written a frame that it holds. May cut off streams. */
  wrote(): void {
    this.add(WRITE_OBJECT_BYTES);
  }

  /** Streams have sent this number of frames that they wrote, or never will. */
  sent(frames: number): void {
    this.bytes -= frames * WRITE_OBJECT_BYTES;
  }

  /** Whether a frame may be written at once; otherwise `writeNext` is called when it is the stream's turn. */
  mayWrite(stream: Stream, frame: Buffer): boolean {
    if (this.waiting.size > 0 || this.left <= 0) {
      this.waiting.add(stream);
      return false;
    }
    this.spend(frame.length);
    return true;
  }

  /** The stream writes nothing more. */
  forget(stream: Stream): void {
    this.waiting.delete(stream);
  }

  private add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes <= this.maxBytes) return;
    for (const slowest of this.holders.keys()) {
      slowest.cutOff();
      if (this.bytes <= this.maxBytes) return;
    }
  }

  private spend(bytes: number): void {
    this.left -= bytes + FRAME_COST;
    this.turn ??= setImmediate(() => this.nextTurn());
  }

  private nextTurn(): void {
    this.turn = undefined;
    this.left = BYTES_PER_TURN;
    for (const stream of this.waiting) {
      if (this.left <= 0) return;
      this.waiting.delete(stream);
      const { bytes, more } = stream.writeNext();
      // behind the others; this loop reaches it again
      if (more) this.waiting.add(stream);
      this.spend(bytes);
    }
  }
}
