/** A chunk costs as much as this many bytes of a large one, however small it is. */
const CHUNK_COST = 128;

/** The chunks of a body, in one buffer that grows. It needs at most twice the memory of what was sent, in whatever chunks. */
export class BodyBuffer {
  /** The number of chunks that were added. */
  chunks = 0;
  /** The cost of receiving it, in bytes of large chunks. */
  cost = 0;
  private buffer = Buffer.alloc(0);
  private length = 0;

  /**
   * @param limit the largest body, in bytes
   * @param least the bytes that it occupies from its first chunk on
   */
  constructor(
    private readonly limit: number,
    private readonly least = 0,
  ) {}

  /** The bytes that it occupies. */
  get capacity(): number {
    return this.buffer.length;
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  /** Copies a chunk, which may be part of a larger buffer; false if the body becomes too large. */
  add(chunk: Buffer): boolean {
    this.chunks++;
    this.cost += Math.max(chunk.length, CHUNK_COST);
    const length = this.length + chunk.length;
    if (length > this.limit) return false;
    if (length > this.capacity) this.grow(Math.min(Math.max(length, 2 * this.capacity, this.least), this.limit));
    chunk.copy(this.buffer, this.length);
    this.length = length;
    return true;
  }

  private grow(capacity: number): void {
    const grown = Buffer.allocUnsafe(capacity);
    this.buffer.copy(grown, 0, 0, this.length);
    this.buffer = grown;
  }
}
