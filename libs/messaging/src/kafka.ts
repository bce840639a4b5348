import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { zstdCompress as compress, zstdDecompress as decompress } from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs, {
  type Admin,
  type AdminConfig,
  type Consumer,
  type ConsumerConfig,
  type ICustomPartitioner,
  type ISocketFactoryArgs,
  type KafkaConfig as KafkajsConfig,
  type LogEntry,
} from 'kafkajs';
import type { Log } from '#observability';
import type { KafkaConfig } from './kafka.config.js';
import './kafkajs-connections.js';
import './kafkajs-encoding.js';
import './kafkajs-groups.js';

const zstdCompress = promisify(compress);
const zstdDecompress = promisify(decompress);

// kafkajs knows the codec's number but has no codec: use Node's
kafkajs.CompressionCodecs[kafkajs.CompressionTypes.ZSTD] = () => ({
  compress: (encoder: { buffer: Buffer }) => zstdCompress(encoder.buffer),
  decompress: (buffer: Buffer) => zstdDecompress(buffer),
});

export interface KafkaClientOptions {
  /** How long a stopping consumer waits for work in progress, in ms. */
  drainMs?: number;
  /** How often a request is retried; the default takes about half a minute. */
  retries?: number;
  /** Called when the process cannot continue: a consumer has failed for good, or Kafka denies an operation. of: what failed. */
  onFatal?(error: Error, of: string): void;
}

/** Makes the consumers and producers of a process. They retry requests with back-off, which covers an outage of about a minute. */
export class KafkaClient extends kafkajs.Kafka {
  readonly drainMs: number;
  readonly onFatal: (error: Error, of: string) => void;
  private readonly settings: KafkajsConfig;

  constructor(
    config: KafkaConfig,
    readonly clientId: string,
    log: Log,
    { drainMs = 8000, retries = 30, onFatal = () => {} }: KafkaClientOptions = {},
  ) {
    const write = logger(log);
    const settings: KafkajsConfig = {
      ...config.clientOptions(),
      clientId,
      connectionTimeout: 3000,
      requestTimeout: 30_000,
      retry: { initialRetryTime: 100, maxRetryTime: 1000, multiplier: 2, retries },
      logLevel: kafkajs.logLevel.WARN,
      logCreator: () => write,
    };
    super(settings);
    this.settings = settings;
    this.drainMs = drainMs;
    this.onFatal = onFatal;
  }

  /** Each has a client of kafkajs to itself, because a client remembers the offsets of every group that its consumers have ever had. */
  override consumer(config: ConsumerConfig): Consumer {
    return new kafkajs.Kafka(this.settings).consumer(config);
  }

  /** A consumer that calls `onConnection` before each connection to a broker that it makes: behind it may be another broker, with other records. */
  watchedConsumer(config: ConsumerConfig, onConnection: () => void): Consumer {
    const socketFactory = (args: ISocketFactoryArgs): Socket => {
      onConnection();
      return openSocket(args);
    };
    return new kafkajs.Kafka({ ...this.settings, socketFactory }).consumer(config);
  }

  /** Calls `work` with an admin client that is connected meanwhile. */
  async withAdmin<T>(work: (admin: Admin) => Promise<T>, config?: AdminConfig): Promise<T> {
    const admin = this.admin(config);
    try {
      await admin.connect();
      return await work(admin);
    } finally {
      await admin.disconnect().catch(() => {});
    }
  }
}

const KEEP_ALIVE_MS = 60_000;

/** As kafkajs does by itself. */
function openSocket({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket {
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket = ssl ? connectTls({ host, port, ...servername, ...ssl }, onConnect) : connect({ host, port }, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** How long a consumer or producer takes to notice a new partition. During that time, it neither reads it nor writes to it, unlike others. */
export const METADATA_MAX_AGE_MS = 30_000;

/** Java's murmur2: another producer with the same key reaches the same partition. */
export const javaPartitioner: ICustomPartitioner = kafkajs.Partitioners.DefaultPartitioner;

const javaPartition = javaPartitioner();

/** The partition of the records with this key, in a topic with this many partitions. */
export function partitionOf(key: string, partitions: number): number {
  const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({ ...NO_METADATA, partitionId }));
  return javaPartition({ topic: '', partitionMetadata, message: { key, value: null } });
}

/** The partitioner only counts the partitions. */
const NO_METADATA = { partitionErrorCode: 0, leader: 0, replicas: [], isr: [] };

/** A broker that is down concerns every connection, again and again: the same message is a warning once in this time. */
const REPEATED_MS = 10_000;

/** Warnings about each idempotent producer (publisher.ts), and about the fetches that a stop does not wait for (kafkajs-connections.ts). */
const EXPECTED = /^(Limiting retries for the idempotent producer|Response without match)/;

function logger(log: Log): (entry: LogEntry) => void {
  const warnedAt = new Map<string, number>();
  return ({ namespace, level, log: { message, timestamp: _, stack: __, ...fields } }) => {
    const subject = `${message} ${fields.groupId ?? ''}`;
    const now = performance.now();
    // most errors of kafkajs are a broker that is down; the owner of the process logs the error that ends it
    const isNews = !EXPECTED.test(message) && level <= kafkajs.logLevel.WARN && now - (warnedAt.get(subject) ?? -Infinity) >= REPEATED_MS;
    if (isNews) for (const [each, at] of warnedAt) if (now - at >= REPEATED_MS) warnedAt.delete(each);
    if (isNews) warnedAt.set(subject, now);
    log[isNews ? 'warn' : 'debug']({ ...fields, namespace }, `kafka: ${message}`);
  };
}
