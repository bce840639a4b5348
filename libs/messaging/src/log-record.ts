import type { KafkaMessage } from 'kafkajs';
import { FetchedMessage } from './fetch-response.js';
import { RecordHeaders } from './record-headers.js';

/** The headers of a message of kafkajs. */
export const headersOf = (message: Pick<KafkaMessage, 'headers'>): RecordHeaders =>
  message instanceof FetchedMessage ? message.texts : RecordHeaders.of(message.headers);

/** A record as it is in the topic. */
export class LogRecord {
  readonly offset: number;
  /** In ms, as Kafka returned it. */
  readonly timestamp: number;
  readonly key: string | null;
  readonly value: Buffer | null;
  private readonly headers: RecordHeaders;
  /** Of the key, the value and the decoded headers: what it takes in memory. */
  readonly bytes: number;

  constructor(
    readonly topic: string,
    readonly partition: number,
    message: KafkaMessage,
    /** The record's timestamp in ms, made monotonic within its partition. */
    readonly clock: number,
  ) {
    this.offset = Number(message.offset);
    this.timestamp = Number(message.timestamp);
    this.key = message.key === null ? null : message.key.toString('utf8');
    this.value = message.value;
    this.headers = headersOf(message);
    this.bytes = (message.key?.length ?? 0) + (message.value?.length ?? 0) + this.headers.bytes;
  }

  /** The text of a header; the first one, if the header occurs twice. One without a value, which Kafka allows, counts as absent. */
  header(name: string): string | undefined {
    return this.headers.get(name);
  }

  /** Whether it has more headers than `header` and `headerNames` know. */
  get hasTooManyHeaders(): boolean {
    return this.headers.areTooMany;
  }

  headerNames(): readonly string[] {
    return this.headers.names;
  }

  /** All headers as text. */
  headerEntries(): Record<string, string> {
    return Object.fromEntries(this.headers.names.map((name) => [name, this.header(name) ?? '']));
  }
}
