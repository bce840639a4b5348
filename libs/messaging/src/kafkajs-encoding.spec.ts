import { describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-encoding.js';

interface Encoder {
  buffer: Buffer;
  writeVarInt(value: number): Encoder;
}

interface Decoder {
  readVarInt(): number;
  /** A length, and as many bytes. */
  readVarIntBytes(): Buffer;
}

interface KafkaRecord {
  key: Buffer;
  value: Buffer | null;
  headers: Record<string, Buffer>;
}

// the spec needs the instances that kafkajs itself loads
const load = createRequire(import.meta.url);
const EncoderClass = load('kafkajs/src/protocol/encoder.js') as new () => Encoder;
const DecoderClass = load('kafkajs/src/protocol/decoder.js') as new (bytes: Buffer) => Decoder;
const encode = load('kafkajs/src/protocol/recordBatch/record/v0/index.js') as (record: object) => Encoder;
const decode = load('kafkajs/src/protocol/recordBatch/record/v0/decoder.js') as (decoder: Decoder, context: object) => KafkaRecord;

const context = { firstOffset: '0', firstTimestamp: '0', magicByte: 2 };
const headers = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`ce_${n}`, 'ä'.repeat(10 * n)]));

describe('a record for Kafka', () => {
  it.each([0, 1, 119, 120, 4000, 100_000])('has the key, the headers and the %d bytes that it was given', (size) => {
    const value = Buffer.alloc(size, 7);
    const encoded = new DecoderClass(encode({ key: 'dc_1', value, headers }).buffer);
    const read = decode(new DecoderClass(encoded.readVarIntBytes()), context);
    expect({ key: read.key.toString(), value: read.value ?? Buffer.alloc(0) }).toEqual({ key: 'dc_1', value });
    expect(Object.entries(read.headers).map(([name, each]) => [name, each.toString()])).toEqual(Object.entries(headers));
  });

  it('is encoded without memory outside of the heap for each header', () => {
    const allocated = jest.spyOn(Buffer, 'alloc');
    encode({ key: 'dc_1', value: Buffer.from('1'), headers });
    expect(allocated.mock.calls.filter(([size]) => size > 0)).toEqual([]);
    allocated.mockRestore();
  });
});

it.each([0, 1, -1, 63, 64, -64, -65, 8191, 8192, 1_048_575, 2_147_483_647, -2_147_483_648])(
  'kafkajs reads the number %d that it wrote',
  (value) => {
    expect(new DecoderClass(new EncoderClass().writeVarInt(value).buffer).readVarInt()).toBe(value);
  },
);
