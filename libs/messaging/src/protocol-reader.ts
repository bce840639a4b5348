import type { RepeatedTexts } from './repeated-texts.js';

/** Reads values of Kafka's protocol one after another. Throws a RangeError at the end of its bytes. */
export class ProtocolReader {
  constructor(
    private readonly buffer: Buffer,
    private at = 0,
    private end = buffer.length,
  ) {}

  get left(): number {
    return this.end - this.at;
  }

  /** A reader of what is left, which this one skips. */
  rest(): ProtocolReader {
    const { buffer, at, end } = this;
    this.at = end;
    return new ProtocolReader(buffer, at, end);
  }

  /** Lets nothing be read behind the next `length` bytes. Returns the end until now, for `leave`. */
  enter(length: number): number {
    const { at, end } = this;
    this.advance(length);
    [this.at, this.end] = [at, at + length];
    return end;
  }

  /** Continues behind the bytes that were entered. */
  leave(end: number): void {
    this.at = this.end;
    this.end = end;
  }

  int8(): number {
    return this.buffer.readInt8(this.advance(1));
  }

  int16(): number {
    return this.buffer.readInt16BE(this.advance(2));
  }

  int32(): number {
    return this.buffer.readInt32BE(this.advance(4));
  }

  int64(): bigint {
    return this.buffer.readBigInt64BE(this.advance(8));
  }

  /** Of up to 64 bits, zigzag-encoded. Above 2^53, it is rounded. */
  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.buffer[this.advance(1)] as number;
      value += (byte & 127) * factor;
      if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
  }

  /** Bytes after their length; null if the length is negative. */
  nullable(): Buffer | null {
    const length = this.varint();
    return length < 0 ? null : this.bytes(length);
  }

  text(length: number, repeated: RepeatedTexts): string {
    const from = this.advance(length);
    return repeated.decode(this.buffer, from, from + length);
  }

  bytes(length: number): Buffer {
    const from = this.advance(length);
    return this.buffer.subarray(from, from + length);
  }

  private advance(length: number): number {
    const from = this.at;
    if (length < 0 || length > this.end - from) throw new RangeError('a record of Kafka ends too early');
    this.at = from + length;
    return from;
  }
}
