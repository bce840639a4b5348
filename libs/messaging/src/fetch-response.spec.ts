import { describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import kafkajs, { type IHeaders } from 'kafkajs';
import { cpuSeconds } from '#testing';
import { decodeFetchResponse } from './fetch-response.js';
import './kafka.js';
import { RecordHeaders } from './record-headers.js';

interface RecordToEncode {
  delta: number;
  key?: string | null;
  value?: string | null;
  headers?: [string, string | null][];
  timestampDelta?: number;
}

interface BatchToEncode {
  firstOffset?: number;
  /** Default: as many offsets as records. */
  lastDelta?: number;
  attributes?: number;
  producerId?: number;
  records: RecordToEncode[];
}

const FIRST_TIMESTAMP = 1_700_000_000_000;
const MAX_TIMESTAMP = FIRST_TIMESTAMP + 500;
const LOG_APPEND_TIME = 8;
const IN_TRANSACTION = 0x10;
const CONTROL_IN_TRANSACTION = 0x30;

const fixed = (size: 1 | 2 | 4 | 8, value: number): Buffer => {
  const buffer = Buffer.alloc(size);
  if (size === 8) buffer.writeBigInt64BE(BigInt(value));
  else buffer.writeIntBE(value, 0, size);
  return buffer;
};

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value >= 0 ? value * 2 : -value * 2 - 1;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Buffer.from([...bytes, left]);
}

const text = (value: string | null | undefined): Buffer =>
  value == null ? varint(-1) : Buffer.concat([varint(Buffer.byteLength(value)), Buffer.from(value)]);

function encodeRecord({ delta, key, value, headers = [], timestampDelta = 0 }: RecordToEncode): Buffer {
  const named = headers.flatMap(([name, value]) => [text(name), text(value)]);
  const body = Buffer.concat([
    fixed(1, 0),
    varint(timestampDelta),
    varint(delta),
    text(key),
    text(value),
    varint(headers.length),
    ...named,
  ]);
  return Buffer.concat([varint(body.length), body]);
}

async function encodeBatch({
  firstOffset = 100,
  records,
  lastDelta = records.length - 1,
  attributes = 0,
  producerId = 77,
}: BatchToEncode): Promise<Buffer> {
  const codec = (attributes & 7) as 0 | 1 | 4;
  const plain = Buffer.concat(records.map(encodeRecord));
  const { compress } = codec === 0 ? { compress: () => plain } : kafkajs.CompressionCodecs[codec]();
  const rest = Buffer.concat([
    ...[fixed(4, 0), fixed(1, 2), fixed(4, 0), fixed(2, attributes), fixed(4, lastDelta)],
    ...[fixed(8, FIRST_TIMESTAMP), fixed(8, MAX_TIMESTAMP), fixed(8, producerId), fixed(2, 0), fixed(4, 0), fixed(4, records.length)],
    await compress({ buffer: plain }),
  ]);
  return Buffer.concat([fixed(8, firstOffset), fixed(4, rest.length), rest]);
}

/** @param aborted producers and first offsets of aborted transactions, in the order in which these ended */
const respond = (batches: Buffer, aborted: [producerId: number, firstOffset: number][] = []): Buffer =>
  Buffer.concat([
    ...[fixed(4, 0), fixed(2, 0), fixed(4, 9), fixed(4, 1), fixed(2, 6), Buffer.from('events'), fixed(4, 1)],
    ...[fixed(4, 3), fixed(2, 0), fixed(8, 1000), fixed(8, 999), fixed(8, 5)],
    ...[fixed(4, aborted.length), ...aborted.flatMap((each) => each.map((number) => fixed(8, number)))],
    ...[fixed(4, -1), fixed(4, batches.length), batches],
  ]);

async function messagesOf(...batches: BatchToEncode[]) {
  const { responses } = await decodeFetchResponse(respond(Buffer.concat(await Promise.all(batches.map(encodeBatch)))));
  return responses[0]!.partitions[0]!.messages;
}
const offsetsOf = async (...batches: BatchToEncode[]) => (await messagesOf(...batches)).map(({ offset }) => Number(offset));

// the spec needs the module that kafkajs itself loads; its own decoder was replaced, and an older version has the same records
const { decode: kafkajsDecode } = createRequire(import.meta.url)('kafkajs/src/protocol/requests/fetch/v8/response.js') as {
  decode(response: Buffer): Promise<{ responses: { partitions: { messages: { headers: IHeaders }[] }[] }[] }>;
};
/** The same response in version 8, which has no preferred replica. */
const inVersion8 = (response: Buffer): Buffer => Buffer.concat([response.subarray(0, 56), response.subarray(60)]);

const entriesOf = (headers: RecordHeaders) => headers.names.map((name) => [name, headers.get(name)]);

describe('a response to a fetch', () => {
  it('has the state of each partition', async () => {
    expect(await decodeFetchResponse(respond(Buffer.alloc(0), [[77, 100]]))).toEqual({
      throttleTime: 0,
      clientSideThrottleTime: 0,
      errorCode: 0,
      sessionId: 9,
      responses: [
        {
          topicName: 'events',
          partitions: [
            {
              ...{ partition: 3, errorCode: 0, highWatermark: '1000', lastStableOffset: '999', lastStartOffset: '5' },
              ...{ abortedTransactions: [], preferredReadReplica: -1, messages: [] },
            },
          ],
        },
      ],
    });
  });

  it.each([
    ['uncompressed', 0],
    ['gzip', 1],
    ['zstd', 4],
    ['stamped by the broker', LOG_APPEND_TIME],
    ['a marker of a transaction', CONTROL_IN_TRANSACTION],
  ])('has the same records as with the decoder of kafkajs: %s', async (_, attributes) => {
    const records: RecordToEncode[] = [
      { delta: 0, key: 'dc_1', value: '{"a":"é"}', headers: [['a', 'b']], timestampDelta: 7 },
      { delta: 1, key: null, value: null, timestampDelta: -3_000_000 },
      {
        delta: 2,
        key: '',
        value: 'x'.repeat(300),
        headers: [
          ['é', null],
          ['twice', '1'],
          ['twice', '2'],
          ['twice', '3'],
        ],
      },
    ];
    const response = respond(await encodeBatch({ records, attributes }));
    const theirs = (await kafkajsDecode(inVersion8(response))).responses[0]!.partitions[0]!.messages;
    const { messages } = (await decodeFetchResponse(response)).responses[0]!.partitions[0]!;
    expect(messages).toHaveLength(3);
    for (const [index, { texts, ...message }] of messages.entries()) {
      expect(theirs[index]).toMatchObject(message);
      expect(entriesOf(RecordHeaders.of(theirs[index]!.headers))).toEqual(entriesOf(texts));
      expect(entriesOf(RecordHeaders.of(messages[index]!.headers))).toEqual(entriesOf(texts));
    }
  });

  it('has the records of several batches, without one that is cut off', async () => {
    const batches = await Promise.all(
      [100, 102, 104].map((firstOffset) => encodeBatch({ firstOffset, records: [{ delta: 0 }, { delta: 1 }] })),
    );
    const { responses } = await decodeFetchResponse(respond(Buffer.concat(batches).subarray(0, -1)));
    expect(responses[0]!.partitions[0]!.messages.map(({ offset }) => offset)).toEqual(['100', '101', '102', '103']);
  });

  it('has few of the batches that take much more memory than their compressed bytes, but at least one of each partition', async () => {
    const attributes = kafkajs.CompressionTypes.ZSTD;
    const batchOf = (firstOffset: number, value: string) => encodeBatch({ firstOffset, attributes, records: [{ delta: 0, value }] });
    const small = await Promise.all(Array.from({ length: 100 }, (_, index) => batchOf(index, 'x'.repeat(1024 * 1024))));
    expect(Buffer.concat(small).length).toBeLessThan(100_000);
    const offsets = async (...batches: Buffer[]) =>
      (await decodeFetchResponse(respond(Buffer.concat(batches)))).responses[0]!.partitions[0]!.messages.map(({ offset }) =>
        Number(offset),
      );
    expect(await offsets(...small)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await offsets(await batchOf(7, 'x'.repeat(20 * 1024 * 1024)), ...small)).toEqual([7]);
  });

  it('has the offsets that compaction left, and the hidden end of a batch', async () => {
    expect(await visibleOffsets([{ records: [{ delta: 1 }, { delta: 5 }, { delta: 6 }], lastDelta: 8 }])).toEqual([
      '101',
      '105',
      '106',
      '(108 at -1)',
    ]);
    expect(await visibleOffsets([{ records: [], lastDelta: 8 }])).toEqual(['(108 at -1)']);
  });
});

/** The offsets of the messages; hidden ones are in parentheses, with their timestamps. */
async function visibleOffsets(batches: BatchToEncode[], aborted: [producerId: number, firstOffset: number][] = []): Promise<string[]> {
  const { responses } = await decodeFetchResponse(respond(Buffer.concat(await Promise.all(batches.map(encodeBatch))), aborted));
  const { messages } = responses[0]!.partitions[0]!;
  return messages.map(({ offset, timestamp, isControlRecord }) => (isControlRecord ? `(${offset} at ${timestamp})` : offset));
}

describe('the records of an aborted transaction are hidden', () => {
  const ABORT = '\0\0\0\0';
  const data = (producerId: number, firstOffset: number, key = 'k'): BatchToEncode => ({
    ...{ producerId, firstOffset, attributes: IN_TRANSACTION },
    records: [
      { delta: 0, key },
      { delta: 1, key },
    ],
  });
  const marker = (producerId: number, firstOffset: number, key = ABORT): BatchToEncode => ({
    ...{ producerId, firstOffset, attributes: CONTROL_IN_TRANSACTION },
    records: [{ delta: 0, key }],
  });
  const at = (offset: number) => `(${offset} at ${MAX_TIMESTAMP})`;
  const marked = (offset: number) => `(${offset} at ${FIRST_TIMESTAMP})`;

  it('until its marker, and those of other producers and of later transactions are not', async () => {
    const other: BatchToEncode = { firstOffset: 102, producerId: 5, records: [{ delta: 0 }] };
    const batches = [data(1, 100), other, data(1, 103), marker(1, 105), data(1, 106), marker(1, 108, '\0\0\0\x01')];
    expect(await visibleOffsets(batches, [[1, 100]])).toEqual([at(101), '102', at(104), marked(105), '106', '107', marked(108)]);
  });

  it('although it overlaps with another one that ends before it', async () => {
    const batches = [data(1, 100), data(2, 102), data(3, 104), marker(2, 106), data(1, 107), marker(1, 109)];
    const ended: [number, number][] = [
      [2, 102],
      [1, 100],
    ];
    expect(await visibleOffsets(batches, ended)).toEqual([at(101), at(103), '104', '105', marked(106), at(108), marked(109)]);
  });

  it('although the fetch begins in the middle of several of them', async () => {
    expect(
      await visibleOffsets(
        [data(2, 200), data(1, 202)],
        [
          [1, 100],
          [2, 110],
          [3, 120],
        ],
      ),
    ).toEqual([at(201), at(203)]);
  });

  it('even if one of them has the key of a marker', async () => {
    expect(await visibleOffsets([data(1, 100, ABORT), data(1, 102)], [[1, 100]])).toEqual([at(101), at(103)]);
  });
});

describe('a batch of a producer that breaks the rules', () => {
  it.each([
    ['beyond its batch', [0, 1_000_000, 2]],
    ['before its batch', [-1_000_000, 1, 2]],
    ['that another record has', [0, 0, 0]],
    ['of another record', [2, 0, 1]],
  ])('has the offsets of the log although a record claims one %s', async (_, deltas) => {
    expect(await offsetsOf({ records: deltas.map((delta) => ({ delta })) }, { firstOffset: 103, records: [{ delta: 0 }] })).toEqual([
      100, 101, 102, 103,
    ]);
  });

  it('has ascending offsets below its end after compaction, too', async () => {
    expect(await offsetsOf({ records: [{ delta: -5 }, { delta: 99 }, { delta: 3 }], lastDelta: 8 })).toEqual([100, 107, 108]);
  });

  it('may have as many records as fit', async () => {
    expect(await offsetsOf({ records: Array<RecordToEncode>(300_000).fill({ delta: 0 }) })).toHaveLength(300_000);
  });

  it.each([
    ['different names', (index: number) => `h${index}`],
    ['one name', () => 'h'],
  ])('is decoded in linear time although a record has very many headers with %s', async (_, name) => {
    const headers = Array.from({ length: 200_000 }, (_, index): [string, null] => [name(index), null]);
    const batch = respond(await encodeBatch({ records: [{ delta: 0, headers }] }));
    expect(await cpuSeconds(() => decodeFetchResponse(batch))).toBeLessThan(5);
  });

  it('has the first 1000 headers of a record, counted with what they take once they are decoded, at a small cost', async () => {
    const headers = Array.from({ length: 300_000 }, (_, index): [string, null] => [index.toString(36), null]);
    const batch = respond(
      await encodeBatch({
        records: [
          { delta: 0, headers },
          { delta: 1, headers: headers.slice(0, 1000) },
        ],
      }),
    );
    let decoded: RecordHeaders[] = [];
    const seconds = await cpuSeconds(async () => {
      decoded = (await decodeFetchResponse(batch)).responses[0]!.partitions[0]!.messages.map(({ texts }) => texts);
      decoded[0]?.get('none');
    });
    expect(decoded.map(({ names, areTooMany }) => [names.length, areTooMany])).toEqual([
      [1000, true],
      [1000, false],
    ]);
    expect(decoded.map(({ bytes }) => Math.round(bytes / 1000))).toEqual([1852, 104]);
    expect(seconds).toBeLessThan(0.1);
  });

  it('may have headers with the names of properties that objects have', async () => {
    const [message] = await messagesOf({
      records: [
        {
          delta: 0,
          headers: [
            ['__proto__', 'a'],
            ['constructor', 'b'],
            ['constructor', 'c'],
          ],
        },
      ],
    });
    expect(entriesOf(message!.texts)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });

  it('cannot have a record that contains a part of the next one', async () => {
    const records = ['a', 'b'].map((value, delta) => ({ delta, value }));
    const batch = await encodeBatch({ records });
    // the first record claims that its value continues in the second one
    const valueLength = batch.indexOf(Buffer.from('a')) - 1;
    batch[valueLength] = 2 * 4;
    await expect(decodeFetchResponse(respond(batch))).rejects.toThrow('ends too early');
  });

  it('fails to be decoded if it ends within a record', async () => {
    const batch = await encodeBatch({ records: [{ delta: 0, value: 'abc' }] });
    batch.writeInt32BE(batch.readInt32BE(8) - 2, 8);
    await expect(decodeFetchResponse(respond(batch.subarray(0, -2)))).rejects.toThrow('ends too early');
  });
});

it('kafkajs decodes fetch responses with this decoder, in its newest version of the protocol', () => {
  const require = createRequire(import.meta.url);
  const { versions } = require('kafkajs/src/protocol/requests/fetch/index.js') as { versions: string[] };
  const { decode } = require('kafkajs/src/protocol/requests/fetch/v11/response.js') as { decode: unknown };
  expect(versions.at(-1)).toBe('11');
  expect(decode).toBe(decodeFetchResponse);
});
