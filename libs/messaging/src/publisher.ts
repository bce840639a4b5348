import type { ICustomPartitioner, Message, Producer, RecordMetadata } from 'kafkajs';
import kafkajs from 'kafkajs';
import { EVENTS_TOPIC, TooManyRequests, Unavailable, WORKFLOW_TRIGGERS_TOPIC } from '#contracts';
import { SumPerKey } from '#limits';
import { explainKafkaError, isRefused } from './kafka-errors.js';
import { javaPartitioner, type KafkaClient, METADATA_MAX_AGE_MS } from './kafka.js';
import { KeptClient } from './kept-client.js';

/** A record to send. Each has a key, because order is kept per key. */
export interface OutgoingRecord {
  topic: string;
  key: string;
  /** null: a tombstone. */
  value: Buffer | string | null;
  headers?: Record<string, string>;
}

/** The bytes of a record in addition to its value and headers. */
const RECORD_OVERHEAD = 100;

export interface SendOptions {
  /** The records are rejected with Unavailable after this time, in ms. */
  withinMs?: number;
  /** Accounts take turns, so that the records of one do not wait for all of another's. */
  account?: string;
  /** Whether the records may wait a few ms for others: the caller expects more of them soon. */
  mayWait?: boolean;
  /** A single record whose second copy would do harm: it is in the log at most once, however often the request is repeated. It is a batch by itself. */
  once?: boolean;
}

/** A share of the records of one caller. */
interface Waiting {
  account: string;
  records: OutgoingRecord[];
  bytes: number;
  once: boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** For callers whose clients wait: a broker that does not acknowledge records within this time, in ms, counts as unavailable. */
export const SEND_WITHIN_MS = 5000;
/** The most that may wait of the records with a time limit: clients repeat requests while the brokers are down. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
/** The same for those of one account. */
const MOST_WAITING_BYTES_OF_ACCOUNT = 16 * 1024 * 1024;

/**
 * The time between the beginnings of two batches, in ms, unless a record may not wait. Each batch wakes the broker and two services, which takes most of the
 * CPU time of a small request.
 */
const PAUSE_MS = 4;

const MAX_BATCH_BYTES = 512 * 1024;
/** Compressing a smaller batch, and decompressing it in each consumer, takes more CPU time than its bytes. */
const COMPRESS_FROM_BYTES = 16 * 1024;

/**
 * Sends records in batches: kafkajs has no linger and sends a request for each `send`, which costs half a millisecond
 * of CPU. Only one batch is in progress at a time, because a retry could reorder concurrent batches of one partition; so
 * the records of one account keep their order.
 */
export class Publisher {
  private readonly producer: Producer;
  private readonly onceProducer: OnceProducer;
  private readonly waiting = new Turns();
  /** Of the records with a time limit, by account. */
  private readonly limitedBytes = new SumPerKey<string>();
  private flushing = false;
  /** Of the next flush. */
  private timer: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;
  /** Whether one of the waiting records may not wait for others, or they are enough for a batch. */
  private isUrgent = false;
  /** When the latest batch began, as from performance.now(). */
  private begunAt = -Infinity;

  constructor(private readonly kafka: KafkaClient) {
    this.producer = kafka.producer({
      createPartitioner: notingPartitioner,
      allowAutoTopicCreation: false,
      metadataMaxAge: METADATA_MAX_AGE_MS,
    });
    this.onceProducer = new OnceProducer(kafka);
  }

  async connect(): Promise<void> {
    await this.producer.connect();
  }

  /**
   * Resolves when the broker has all of the records (acks from all in-sync replicas); rejects if the broker refuses them.
   *
   * With `withinMs`, it also rejects at once while too many records with a time limit wait; records whose batch has not begun in time are not sent any
   * more. Without it, records wait as long as kafkajs retries: for callers that limit and repeat their own work, such as consumers.
   *
   * Throws TooManyRequests while too many records of the account wait.
   */
  async send(records: OutgoingRecord[], { withinMs, account = '', mayWait = false, once = false }: SendOptions = {}): Promise<void> {
    const parts = shares(records).map((share) => ({ account, records: share, bytes: bytesOf(share), once }));
    const bytes = withinMs === undefined ? 0 : parts.reduce((sum, part) => sum + part.bytes, 0);
    // all shares or none: a caller that repeats the records would send the others twice
    if (this.limitedBytes.total + bytes > MOST_WAITING_BYTES) throw notTaken('too many records wait for Kafka');
    if (account !== '' && this.limitedBytes.of(account) + bytes > MOST_WAITING_BYTES_OF_ACCOUNT)
      throw new TooManyRequests('too many events of this account wait for Kafka');
    this.limitedBytes.add(account, bytes);
    if (!mayWait) this.isUrgent = true;
    try {
      await Promise.all(parts.map((part) => this.add(part, withinMs)));
    } finally {
      this.limitedBytes.add(account, -bytes);
    }
  }

  private add(part: Omit<Waiting, 'resolve' | 'reject'>, withinMs: number | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { ...part, resolve, reject };
      if (withinMs !== undefined) this.limitTime(waiting, withinMs);
      this.waiting.add(waiting);
      if (!this.flushing) this.schedule();
    });
  }

  private schedule(): void {
    const restMs = this.isUrgent ? 0 : this.begunAt + PAUSE_MS - performance.now();
    if (restMs > 0) this.timer ??= setTimeout(() => void this.flush(), restMs);
    else this.immediate ??= setImmediate(() => void this.flush());
  }

  /** Sends the waiting records, then disconnects. */
  async close(): Promise<void> {
    while (!this.waiting.isEmpty || this.flushing) await new Promise((resolve) => setTimeout(resolve, 5));
    await Promise.all([this.producer.disconnect(), this.onceProducer.close()]);
  }

  private limitTime(waiting: Waiting, withinMs: number): void {
    const { resolve, reject } = waiting;
    const timer = setTimeout(() => {
      this.waiting.delete(waiting);
      reject(notTaken('Kafka does not take records'));
    }, withinMs);
    waiting.resolve = () => {
      clearTimeout(timer);
      resolve();
    };
    waiting.reject = (error) => {
      clearTimeout(timer);
      reject(error);
    };
  }

  private async flush(): Promise<void> {
    clearTimeout(this.timer);
    clearImmediate(this.immediate);
    this.timer = this.immediate = undefined;
    this.flushing = true;
    do {
      this.begunAt = performance.now();
      const { batch, bytes } = this.take();
      if (batch.length > 0) await this.sendBatch(batch, bytes);
    } while (this.isUrgent);
    this.flushing = false;
    if (!this.waiting.isEmpty) this.schedule();
  }

  /** A record that Kafka refuses is a failure of its caller, and not of the others. */
  private async sendBatch(batch: Waiting[], bytes: number): Promise<void> {
    try {
      if (batch[0]?.once) await this.onceProducer.send(byTopic(batch));
      else await this.produce(byTopic(batch), bytes >= COMPRESS_FROM_BYTES && !isReadOutside(batch));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (isRefused(error) && batch.length > 1) {
        for (const each of batch) await this.sendBatch([each], each.bytes);
        return;
      }
      const explanation = explainKafkaError(error);
      // a missing permission does not resolve itself
      if (explanation !== undefined) this.kafka.onFatal(error as Error, batchTopics(batch));
      for (const { reject } of batch) reject(error as Error);
    }
  }

  /**
   * If one of several brokers fails, kafkajs 2.2.4 repeats only the requests to brokers that have not responded. A partition that has moved to one that has
   * is left out, and the batch is acknowledged without its records: these are sent again.
   */
  private async produce(topicMessages: TopicMessages[], isCompressed: boolean): Promise<void> {
    const compression = isCompressed ? kafkajs.CompressionTypes.ZSTD : kafkajs.CompressionTypes.None;
    let rest = topicMessages;
    do rest = notAcknowledged(rest, await this.producer.sendBatch({ acks: -1, compression, topicMessages: rest }));
    while (rest.length > 0);
  }

  private take(): { batch: Waiting[]; bytes: number } {
    const batch: Waiting[] = [];
    let sum = 0;
    for (let next = this.waiting.next; next; next = this.waiting.next) {
      if (batch.length > 0 && (next.once || batch[0]?.once || sum + next.bytes > MAX_BATCH_BYTES)) break;
      sum += next.bytes;
      batch.push(next);
      this.waiting.take(next);
    }
    // what did not fit gains nothing by waiting
    this.isUrgent = !this.waiting.isEmpty;
    return { batch, bytes: sum };
  }
}

/** The number of attempts for a record takes about as long as its caller waits: a later one would surprise. */
const ONCE_RETRIES = 8;
/** In ms. An older producer is replaced before it is used: after a loss of the brokers' data, another one could have the same id. */
const ONCE_MAX_AGE_MS = 30_000;

/**
 * Sends records one at a time, each at most once: the broker recognises a repeated request by the producer's id and the number of the record.
 *
 * The idempotent producer of kafkajs 2.2.4 is reliable only in this way. If one of several brokers does not respond, kafkajs sends the records of the
 * others again under new numbers. After a failure, the next record gets the number of the failed one: if that was written after all, the broker takes the
 * next one for its repetition, and acknowledges it without writing it. So each request has one record, and a failure ends the producer.
 */
class OnceProducer {
  private readonly kept: KeptClient<Producer>;

  constructor(kafka: KafkaClient) {
    const options = { createPartitioner: javaPartitioner, allowAutoTopicCreation: false, metadataMaxAge: METADATA_MAX_AGE_MS };
    this.kept = new KeptClient(() => kafka.producer({ ...options, idempotent: true, retry: { retries: ONCE_RETRIES } }), ONCE_MAX_AGE_MS);
  }

  async send(topicMessages: TopicMessages[]): Promise<void> {
    // the next records wait for this one, so it waits for no connection that ends
    if (this.kept.isOld) void this.close();
    try {
      const producer = await this.kept.get();
      await producer.sendBatch({ acks: -1, topicMessages });
    } catch (error) {
      void this.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.kept.close();
  }
}

/** The waiting shares: in the order in which they came for each account, one of an account after one of another. */
class Turns {
  /** In the order of their turns. */
  private readonly lines = new Map<string, Set<Waiting>>();

  get isEmpty(): boolean {
    return this.lines.size === 0;
  }

  get next(): Waiting | undefined {
    const line = this.lines.values().next();
    return line.done ? undefined : line.value.values().next().value;
  }

  add(waiting: Waiting): void {
    const line = this.lines.get(waiting.account);
    if (line) line.add(waiting);
    else this.lines.set(waiting.account, new Set([waiting]));
  }

  /** Removes the next one: another account is next. */
  take(waiting: Waiting): void {
    const line = this.lines.get(waiting.account);
    this.lines.delete(waiting.account);
    line?.delete(waiting);
    if (line && line.size > 0) this.lines.set(waiting.account, line);
  }

  delete(waiting: Waiting): void {
    const line = this.lines.get(waiting.account);
    line?.delete(waiting);
    if (line?.size === 0) this.lines.delete(waiting.account);
  }
}

const notTaken = (what: string): Unavailable => new Unavailable(what, 'the message log does not accept records');

const batchTopics = (batch: Waiting[]): string =>
  `topics ${[...new Set(batch.flatMap(({ records }) => records.map(({ topic }) => topic)))].join(', ')}`;

/** Whether other programs read the topic, whose clients may not support zstd. */
const isReadOutside = (batch: Waiting[]): boolean =>
  batch.some(({ records }) => records.some(({ topic }) => topic === EVENTS_TOPIC || topic === WORKFLOW_TRIGGERS_TOPIC));

interface SentMessage extends Message {
  /** The partition to which it was sent last. */
  sentTo?: number;
}

interface TopicMessages {
  topic: string;
  messages: SentMessage[];
}

/** kafkajs asks for the partition of each message before each attempt. */
const notingPartitioner: ICustomPartitioner = () => {
  const partitioner = javaPartitioner();
  return (args) => ((args.message as SentMessage).sentTo = partitioner(args));
};

/** The messages without those of the partitions that have acknowledged theirs. */
function notAcknowledged(topicMessages: TopicMessages[], acknowledged: RecordMetadata[]): TopicMessages[] {
  const partitionsOf = Map.groupBy(acknowledged, ({ topicName }) => topicName);
  return topicMessages.flatMap(({ topic, messages }) => {
    const partitions = new Set(partitionsOf.get(topic)?.map(({ partition }) => partition));
    const rest = messages.filter(({ sentTo }) => sentTo !== undefined && !partitions.has(sentTo));
    return rest.length > 0 ? [{ topic, messages: rest }] : [];
  });
}

function byTopic(batch: Waiting[]): TopicMessages[] {
  const topics = new Map<string, SentMessage[]>();
  for (const { records } of batch) {
    for (const { topic, key, value, headers } of records) {
      let messages = topics.get(topic);
      if (!messages) topics.set(topic, (messages = []));
      messages.push({ key, value, headers });
    }
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }));
}

/** The size of the records that are sent together: the broker rejects a batch larger than the topic's `max.message.bytes`, on every retry. */
const SHARE_BYTES = 256 * 1024;

const bytesOf = (records: OutgoingRecord[]): number => records.reduce((sum, record) => sum + sizeOf(record) + RECORD_OVERHEAD, 0);

/** About the bytes of a record's value and headers. */
export function sizeOf({ value, headers }: Pick<OutgoingRecord, 'value' | 'headers'>): number {
  let size = value?.length ?? 0;
  for (const name in headers) size += name.length + (headers[name] as string).length;
  return size;
}

/** The items in their order, as many together as have at most this size; one that is larger goes alone. */
export function inParts<Item>(items: Item[], sizeOf: (item: Item) => number, most: number): Item[][] {
  const found: Item[][] = [];
  let sum = Infinity;
  for (const item of items) {
    const size = sizeOf(item);
    if (sum + size > most) {
      found.push([]);
      sum = 0;
    }
    found.at(-1)?.push(item);
    sum += size;
  }
  return found;
}

/** The records in their order, as many together as fit into a share; one that is larger goes alone. */
export const shares = <Sent extends Pick<OutgoingRecord, 'value' | 'headers'>>(records: Sent[]): Sent[][] =>
  inParts(records, sizeOf, SHARE_BYTES);
