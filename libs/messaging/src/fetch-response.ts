import kafkajs, { type IHeaders, type KafkaMessage } from 'kafkajs';
import { ProtocolReader } from './protocol-reader.js';
import { RecordHeaders } from './record-headers.js';

/** The parts of kafkajs' decoded responses to fetches that its consumer uses. Offsets and ids are decimal strings there. */
export interface FetchResponse {
  throttleTime: number;
  clientSideThrottleTime: number;
  errorCode: number;
  sessionId: number;
  responses: { topicName: string; partitions: FetchedPartition[] }[];
}

interface FetchedPartition {
  partition: number;
  errorCode: number;
  highWatermark: string;
  lastStableOffset: string;
  lastStartOffset: string;
  /** None: their records are hidden already. */
  abortedTransactions: never[];
  preferredReadReplica: number;
  messages: FetchedMessage[];
}

/** The log start offset of the partition from which these messages were fetched: kafkajs does not pass it on. */
const logStarts = new WeakMap<readonly object[], number>();

/** The offset of the first record that the partition still has, or 0 if it is unknown. `messages`: as they were decoded. */
export const logStartOf = (messages: readonly object[]): number => logStarts.get(messages) ?? 0;

/** A record as the consumer of kafkajs passes it on. */
export class FetchedMessage implements Omit<KafkaMessage, 'size'> {
  constructor(
    readonly offset: string,
    /** In ms. */
    readonly timestamp: string,
    readonly key: Buffer | null,
    readonly value: Buffer | null,
    readonly texts: RecordHeaders,
    readonly attributes: number,
    /** Whether it is a marker of the broker, such as the end of a transaction, or stands for hidden records: kafkajs does not pass it on. */
    readonly isControlRecord: boolean,
  ) {}

  /** In the form of kafkajs; `texts` costs less. */
  get headers(): IHeaders {
    return this.texts.toKafkajs();
  }
}

/**
 * The unpacked bytes of a partition after which further batches of a response are not decoded, as if the broker had not sent them: they are fetched again.
 * Brokers limit a response by its compressed bytes, of which 1 MiB can become gigabytes.
 */
const MAX_UNPACKED_BYTES = 8 * 1024 * 1024;

const MAGIC = 2;
const CODEC = 0x07;
const LOG_APPEND_TIME = 0x08;
const IN_TRANSACTION = 0x10;
const CONTROL = 0x20;

/**
 * Decodes a response to a fetch of version 11, which kafkajs 2.2.4 uses with every broker since Kafka 2.3.
 *
 * The decoder of kafkajs trusts producers: its time is quadratic in the headers of a record (20 000 headers, which take 100 KB, block the process for a
 * minute), it throws if a batch has more than about 100 000 records, and it takes offsets from the records, where brokers do not verify them. One such
 * batch would stop all readers of its topic, or let them skip the records of others.
 */
export async function decodeFetchResponse(response: Buffer): Promise<FetchResponse> {
  const reader = new ProtocolReader(response);
  const [clientSideThrottleTime, errorCode, sessionId] = [reader.int32(), reader.int16(), reader.int32()];
  const responses: FetchResponse['responses'] = [];
  for (let topics = reader.int32(); topics > 0; topics--) {
    const topicName = reader.bytes(reader.int16()).toString();
    const partitions: FetchedPartition[] = [];
    for (let left = reader.int32(); left > 0; left--) partitions.push(await decodePartition(reader));
    responses.push({ topicName, partitions });
  }
  // kafkajs waits for the longer of both, and brokers expect the client to wait
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses };
}

async function decodePartition(reader: ProtocolReader): Promise<FetchedPartition> {
  const header = {
    partition: reader.int32(),
    errorCode: reader.int16(),
    highWatermark: String(reader.int64()),
    lastStableOffset: String(reader.int64()),
    lastStartOffset: String(reader.int64()),
    abortedTransactions: [],
  };
  const aborted: AbortedTransaction[] = [];
  for (let left = reader.int32(); left > 0; left--)
    aborted.push({ producerId: String(reader.int64()), firstOffset: Number(reader.int64()) });
  const preferredReadReplica = reader.int32();
  const messages = await decodeBatches(new ProtocolReader(reader.bytes(Math.max(reader.int32(), 0))), new Aborted(aborted));
  logStarts.set(messages, Number(header.lastStartOffset));
  return { ...header, preferredReadReplica, messages };
}

interface AbortedTransaction {
  producerId: string;
  firstOffset: number;
}

/** The first bytes of a batch, and what follows them. */
interface Batch {
  firstOffset: number;
  attributes: number;
  lastDelta: number;
  firstTimestamp: number;
  maxTimestamp: number;
  producerId: string;
  count: number;
  /** Of the records, which may be compressed. */
  rest: ProtocolReader;
}

const isMarker = ({ attributes }: Batch): boolean => (attributes & CONTROL) !== 0;

/** The type of a marker at the end of an aborted transaction, in its key, after the version. */
const ABORT = 0;

/**
 * The aborted transactions of a fetch, as it passes its batches. kafkajs 2.2.4 passes on records of those that overlap: it expects their list in the order of
 * their first offsets, but it has that of their ends, and begins with one of them at each record. It also takes a record with the key of a marker for one.
 */
class Aborted {
  /** Those that begin behind the last batch. */
  private readonly coming: AbortedTransaction[];
  private readonly producers = new Set<string>();

  constructor(transactions: AbortedTransaction[]) {
    this.coming = transactions.sort((a, b) => b.firstOffset - a.firstOffset);
  }

  /** Whether the batch belongs to one of them. Call it once per batch, in the order of the log. */
  includes(batch: Batch): boolean {
    const { firstOffset, lastDelta, producerId, attributes } = batch;
    for (let next = this.coming.at(-1); next && next.firstOffset <= firstOffset + lastDelta; next = this.coming.at(-1)) {
      this.producers.add(next.producerId);
      this.coming.pop();
    }
    return (attributes & IN_TRANSACTION) !== 0 && !isMarker(batch) && this.producers.has(producerId);
  }

  /** The marker of its end has been passed. */
  end(producerId: string): void {
    this.producers.delete(producerId);
  }
}

/** The last batch may be cut off. */
async function decodeBatches(reader: ProtocolReader, aborted: Aborted): Promise<FetchedMessage[]> {
  const messages: FetchedMessage[] = [];
  for (let unpacked = 0; reader.left >= 12 && unpacked < MAX_UNPACKED_BYTES;) {
    const [firstOffset, length] = [Number(reader.int64()), reader.int32()];
    if (reader.left < length) break;
    const batch = readBatch(new ProtocolReader(reader.bytes(length)), firstOffset);
    if (aborted.includes(batch)) {
      messages.push(hiddenEnd(batch, batch.maxTimestamp));
      continue;
    }
    const before = messages.length;
    unpacked += await decodeRecords(batch, messages);
    const last = messages.length > before ? messages.at(-1) : undefined;
    if (isMarker(batch) && last?.key && last.key.length >= 4 && last.key.readInt16BE(2) === ABORT) aborted.end(batch.producerId);
    // compaction has removed the last records, and may remove more, which changes the greatest timestamp
    if (Number(last?.offset) !== firstOffset + batch.lastDelta) messages.push(hiddenEnd(batch, NO_TIMESTAMP));
  }
  return messages;
}

function readBatch(reader: ProtocolReader, firstOffset: number): Batch {
  reader.int32(); // the epoch of the partition's leader
  const magic = reader.int8();
  if (magic !== MAGIC) throw new Error(`a batch of Kafka has format ${magic}; supported is ${MAGIC}`);
  reader.int32(); // the checksum, which the broker has verified
  const attributes = reader.int16();
  const lastDelta = reader.int32();
  const [firstTimestamp, maxTimestamp] = [Number(reader.int64()), Number(reader.int64())];
  const producerId = String(reader.int64());
  reader.int16(); // the producer's epoch
  reader.int32(); // the first sequence number
  return { firstOffset, attributes, lastDelta, firstTimestamp, maxTimestamp, producerId, count: reader.int32(), rest: reader };
}

/** The timestamp of records that have none, and of a hidden one that does not identify its log. */
export const NO_TIMESTAMP = -1;

/** The end of a batch whose last records no reader receives: the next fetch begins behind it. Without it, each further fetch would return this batch. */
function hiddenEnd({ firstOffset, lastDelta }: Batch, timestamp: number): FetchedMessage {
  return new FetchedMessage(String(firstOffset + lastDelta), String(timestamp), null, null, RecordHeaders.of(), 0, true);
}

/** Adds the messages of the batch; returns its unpacked bytes. */
async function decodeRecords(batch: Batch, messages: FetchedMessage[]): Promise<number> {
  const { firstOffset, attributes, lastDelta, firstTimestamp, maxTimestamp, count, rest } = batch;
  const records = await decompressed(attributes & CODEC, rest);
  const unpacked = records.left;
  const isControlRecord = isMarker(batch);
  const isStamped = (attributes & LOG_APPEND_TIME) !== 0;
  let previous = -1;
  for (let index = 0; index < count; index++) {
    const end = records.enter(records.varint());
    const recordAttributes = records.int8();
    const timestampDelta = records.varint();
    // a broker verifies the number of records and of offsets, but not the offset of each record; compaction leaves gaps
    const delta = Math.min(Math.max(records.varint(), previous + 1), lastDelta - (count - 1 - index));
    previous = delta;
    messages.push(
      new FetchedMessage(
        String(firstOffset + delta),
        String(isStamped ? maxTimestamp : firstTimestamp + timestampDelta),
        records.nullable(),
        records.nullable(),
        RecordHeaders.encoded(records),
        recordAttributes,
        isControlRecord,
      ),
    );
    records.leave(end);
  }
  return unpacked;
}

async function decompressed(codec: number, reader: ProtocolReader): Promise<ProtocolReader> {
  if (codec === 0) return reader;
  const { decompress } = kafkajs.CompressionCodecs[codec as keyof typeof kafkajs.CompressionCodecs]() as {
    decompress(bytes: Buffer): Promise<Buffer>;
  };
  return new ProtocolReader(await decompress(reader.bytes(reader.left)));
}
