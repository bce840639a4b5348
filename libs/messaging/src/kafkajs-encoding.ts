import encoderModule from 'kafkajs/src/protocol/encoder.js';
import responseModule from 'kafkajs/src/protocol/requests/fetch/v11/response.js';
import { decodeFetchResponse } from './fetch-response.js';

/** Responses to fetches, in the version that kafkajs uses with every broker since Kafka 2.3. */
const fetchResponse = responseModule as { decode: typeof decodeFetchResponse };
fetchResponse.decode = decodeFetchResponse;

/** A buffer that grows while a request is encoded. */
interface Encoder {
  buf: Buffer;
  offset: number;
  ensureAvailable(bytes: number): void;
  writeUVarInt(value: number): Encoder;
}

const encoding = encoderModule as { prototype: Encoder; nextPowerOfTwo(value: number): number };
const { nextPowerOfTwo } = encoding;
/** The bytes that kafkajs reserves for an encoder whose size it does not know. */
const UNKNOWN_SIZE = 511;
/** Enough for most headers of a record. */
const FIRST_BYTES = 128;

/**
 * kafkajs 2.2.4 has an encoder for each header of each record, and for each it allocates 512 zeroed bytes outside of the heap, which cost more than what
 * is written into them: a thousand small events blocked the main thread for more than ten milliseconds. With this, an encoder begins empty and takes its
 * memory from Node's pool. All of it that is read has been written before.
 */
encoding.nextPowerOfTwo = (value) => (value === UNKNOWN_SIZE ? 0 : nextPowerOfTwo(value));

encoding.prototype.ensureAvailable = function (this: Encoder, bytes: number): void {
  const size = this.offset + bytes;
  if (size <= this.buf.length) return;
  const grown = Buffer.allocUnsafe(Math.max(FIRST_BYTES, nextPowerOfTwo(size)));
  this.buf.copy(grown, 0, 0, this.offset);
  this.buf = grown;
};

/** kafkajs 2.2.4 creates an array and a buffer for each of these numbers. */
encoding.prototype.writeUVarInt = function (this: Encoder, value: number): Encoder {
  // 32 bits, 7 in each byte
  this.ensureAvailable(5);
  let rest = value;
  for (; (rest & ~0x7f) !== 0; rest >>>= 7) this.buf[this.offset++] = (rest & 0x7f) | 0x80;
  this.buf[this.offset++] = rest;
  return this;
};
