/** Length-prefixed frames on one socket: 4 bytes big endian, then that many bytes of JSON. Both ends use this file. */
const headBytes = 4;

export function encodeFrame(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(body.length, 0);
  return Buffer.concat([head, body]);
}

export class FrameTooLarge extends Error {
  constructor(bytes: number) {
    super(`a frame of ${bytes} bytes`);
  }
}

/**
 * Splits a stream into frames. The input may be hostile: a frame over the limit is an error before any of it is stored, and the pieces of a frame are
 * joined once, when the last one has arrived. Otherwise a frame sent byte by byte would cost the square of its length.
 */
export class FrameReader {
  private pieces: Buffer[] = [];
  private have = 0;
  private want = -1;

  constructor(private readonly maxBytes: number) {}

  /** Of the frame that has not arrived completely. */
  get pendingBytes(): number {
    return this.have;
  }

  /** @throws FrameTooLarge */
  *read(chunk: Buffer): Generator<Buffer> {
    this.pieces.push(chunk);
    this.have += chunk.length;
    for (;;) {
      if (this.want < 0) {
        if (this.have < headBytes) return;
        this.want = this.take(headBytes).readUInt32BE(0);
        if (this.want > this.maxBytes) throw new FrameTooLarge(this.want);
      }
      if (this.have < this.want) return;
      const body = this.take(this.want);
      this.want = -1;
      yield body;
    }
  }

  /** The rest is in the last piece: it stays a part of that piece, so that it does not keep the whole frame before it in memory. */
  private take(bytes: number): Buffer {
    const last = this.pieces.at(-1)!;
    const taken = this.pieces.length === 1 ? last.subarray(0, bytes) : Buffer.concat(this.pieces, bytes);
    this.have -= bytes;
    this.pieces = this.have > 0 ? [last.subarray(-this.have)] : [];
    return taken;
  }
}
