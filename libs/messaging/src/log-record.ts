import type { IHeaders, KafkaMessage } from 'kafkajs';

/** A record as it is in the topic. */
export class LogRecord {
  readonly offset: number;
  /** In ms, as Kafka returned it. */
  readonly timestamp: number;
  readonly key: string | null;
  readonly value: Buffer | null;
  private readonly headers: IHeaders;

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
    this.headers = message.headers ?? {};
  }

  /** The text of a header; the first one, if the header occurs twice. One without a value, which Kafka allows, counts as absent. */
  header(name: string): string | undefined {
    const value: Buffer | string | (Buffer | string | null)[] | null | undefined = this.headers[name];
    const first = Array.isArray(value) ? value[0] : value;
    return first?.toString();
  }

  headerNames(): string[] {
    return Object.keys(this.headers);
  }

  /** All headers as text. */
  headerEntries(): Record<string, string> {
    return Object.fromEntries(Object.keys(this.headers).map((name) => [name, this.header(name) ?? '']));
  }
}
