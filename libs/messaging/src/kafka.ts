import { zstdCompress as compress, zstdDecompress as decompress } from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs, { type ICustomPartitioner, type Kafka, type LogEntry } from 'kafkajs';
import type { Environment } from '#config';
import type { Log } from '#observability';

const zstdCompress = promisify(compress);
const zstdDecompress = promisify(decompress);

// kafkajs has the codec's number but no codec: Node's own
kafkajs.CompressionCodecs[kafkajs.CompressionTypes.ZSTD] = () => ({
  compress: (encoder: { buffer: Buffer }) => zstdCompress(encoder.buffer),
  decompress: (buffer: Buffer) => zstdDecompress(buffer),
});

export interface KafkaConfig {
  brokers: string[];
}

export function readKafkaConfig(env: Environment): KafkaConfig {
  const brokers = env.list('KAFKA_BROKERS', 'localhost:9092');
  for (const broker of brokers) if (!/^[^\s:]+:\d+$/.test(broker)) env.problem(`KAFKA_BROKERS must list host:port, not "${broker}"`);
  return { brokers };
}

/** A client of the brokers. It rides out a broker that is away for a minute: requests are tried again, with back-off. */
export function createKafka(config: KafkaConfig, clientId: string, log: Log): Kafka {
  return new kafkajs.Kafka({
    clientId,
    brokers: config.brokers,
    connectionTimeout: 3000,
    requestTimeout: 30_000,
    retry: { initialRetryTime: 100, maxRetryTime: 3000, multiplier: 2, retries: 12 },
    logLevel: kafkajs.logLevel.WARN,
    logCreator: () => (entry) => write(log, entry),
  });
}

/** Java's murmur2: an outside producer with the same key reaches the same partition. */
export const javaPartitioner: ICustomPartitioner = kafkajs.Partitioners.DefaultPartitioner;

function write(log: Log, { namespace, level, log: entry }: LogEntry): void {
  const { message, timestamp: _, stack: __, ...fields } = entry;
  // what kafkajs calls an error is mostly a broker that is away; what must end the process is said by consumer-life
  const name = level <= kafkajs.logLevel.WARN ? 'warn' : 'debug';
  log[name]({ ...fields, namespace }, `kafka: ${message}`);
}
