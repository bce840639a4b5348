import { randomUUID } from 'node:crypto';
import { type CustomTransportStrategy, type MessageHandler, Server } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { Invalid, requestsTopic, type Service, SluiceError } from '#contracts';
import { type Log, withRequestId } from '#observability';
import { sendToDeadLetter } from './dead-letter.js';
import type { KafkaClient } from './kafka.js';
import { LaneConsumer } from './lane-consumer.js';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';
import { BadRecord, jsonOf } from './payload.js';
import type { Publisher } from './publisher.js';
import { errorToWire, HEADER } from './wire.js';

export interface TransportOptions {
  service: Service;
  kafka: KafkaClient;
  publisher: Publisher;
  log: Log;
  /** Whether the error of a handler is transient (such as a database that is down), so that a fact is retried until it succeeds. */
  isTransient(error: unknown): boolean;
}

/** The number of attempts for a fact whose handler throws an error that is not transient. */
const FACT_TRIES = 4;
const REQUESTS_AT_ONCE = 64;
const FACTS_AT_ONCE = 32;

/**
 * Nest's handlers over Kafka. Requests (commands and queries) run concurrently, facts in lanes by key: two consumers,
 * so that neither waits for the other.
 *
 *   request ─► expired? drop ─► handler ─► reply: the result, or the SluiceError; another Error is a bug: logged, `internal`
 *   announced fact ─► like a request, with the handler of the fact
 *   fact ────► handler ─► done │ transient: retried until it succeeds │ not for this topic: dead-letter topic │ otherwise: retried a few times, then there
 */
export class KafkaTransport extends Server implements CustomTransportStrategy {
  private consumers: LaneConsumer[] = [];

  constructor(private readonly options: TransportOptions) {
    super();
  }

  listen(callback: (error?: unknown) => void): void {
    this.start().then(() => callback(), callback);
  }

  async close(): Promise<void> {
    await Promise.all(this.consumers.map((consumer) => consumer.stop()));
  }

  // methods that Nest's Server requires and a Kafka transport does not use
  on(): void {
    throw new Error('not supported');
  }
  unwrap<T>(): T {
    return this.options.kafka as T;
  }

  private async start(): Promise<void> {
    const { service, kafka, log } = this.options;
    const handlers = [...this.messageHandlers];
    const facts = handlers.filter(([, handler]) => handler.isEventHandler).map(([topic]) => topic);
    const requests = handlers.length > facts.length ? [requestsTopic(service)] : [];
    const consumer = (group: string, topics: string[], concurrency: number, task: (record: LogRecord) => Task) =>
      topics.length === 0
        ? []
        : [
            new LaneConsumer(kafka, log, {
              group: `${service}.${group}`,
              topics,
              concurrency,
              maxOutstanding: concurrency * 4,
              plan: (records) => records.map((record) => [task(record)]),
            }),
          ];
    this.consumers = [
      // each request has its own lane, so that requests do not wait for each other
      ...consumer('requests', requests, REQUESTS_AT_ONCE, (record) => ({ lane: randomUUID(), run: () => this.answer(record) })),
      ...consumer('facts', facts, FACTS_AT_ONCE, (record) => ({
        lane: `${record.topic} ${record.key}`,
        run: () => this.hear(record),
      })),
    ];
    await Promise.all(this.consumers.map((each) => each.start()));
  }

  private async answer(record: LogRecord): Promise<void> {
    const { log, publisher } = this.options;
    const replyTo = record.header(HEADER.replyTo);
    const correlationId = record.header(HEADER.correlationId);
    const requestId = record.header(HEADER.requestId);
    const message = record.header(HEADER.message) ?? '';
    if (!replyTo || !correlationId) return this.setAside(record, 'not a request: it names no topic for the reply');
    if (Date.now() > Number(record.header(HEADER.deadline) ?? Infinity))
      return log.warn({ message, request_id: requestId }, 'request.expired');
    const reply = { topic: replyTo, key: correlationId, headers: { [HEADER.correlationId]: correlationId } };
    let value: string | Buffer = Buffer.alloc(0);
    try {
      const result = await this.invoke(message, record, requestId);
      if (result !== undefined) value = JSON.stringify(result);
      // a reply that Kafka does not accept is sent again unchanged: the handler does not run twice for it
      await retry(() => publisher.send([{ ...reply, value }]));
    } catch (error) {
      let meant = error instanceof SluiceError ? error : error instanceof BadRecord ? new Invalid(error.message) : undefined;
      if (!meant && this.options.isTransient(error)) {
        log.warn({ message, request_id: requestId, err: error }, 'request.unavailable');
        meant = new SluiceError('unavailable', 'a required service is unavailable');
      }
      if (!meant) {
        log.error({ message, request_id: requestId, err: error }, 'request.failed');
        meant = new SluiceError('internal', 'internal error');
      }
      const headers = { ...reply.headers, [HEADER.error]: errorToWire(meant) };
      await retry(() => publisher.send([{ ...reply, value, headers }]));
    }
  }

  private async hear(record: LogRecord): Promise<void> {
    const { log } = this.options;
    for (let tries = 1, pause = 100; ; pause = Math.min(pause * 3, 5000)) {
      try {
        await this.invoke(record.topic, record, record.header(HEADER.requestId));
        return;
      } catch (error) {
        const transient =
          this.options.isTransient(error) || (error instanceof SluiceError && ['timeout', 'unavailable'].includes(error.code));
        const fields = { topic: record.topic, partition: record.partition, offset: record.offset, tries, err: error };
        // an error in the record itself does not go away
        const isBad = error instanceof BadRecord || (error instanceof SluiceError && error.code === 'invalid');
        if (isBad || (!transient && tries >= FACT_TRIES)) {
          if (!isBad) log.error(fields, 'fact.failed-for-good');
          return this.setAside(record, error instanceof Error ? error.message : String(error));
        }
        log.warn(fields, 'fact.failed');
        if (!transient) tries += 1;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  private async setAside(record: LogRecord, reason: string): Promise<void> {
    const { publisher, service, log } = this.options;
    log.warn({ topic: record.topic, partition: record.partition, offset: record.offset, reason }, 'record.set-aside');
    await retry(() => sendToDeadLetter(publisher, service, record, reason));
  }

  private async invoke(pattern: string, record: LogRecord, requestId: string | undefined): Promise<unknown> {
    let handler: MessageHandler | undefined = this.messageHandlers.get(pattern);
    if (!handler) throw new BadRecord(`unknown message ${pattern}`);
    const payload = jsonOf(record);
    const call = async () => {
      let result: unknown;
      // several handlers of one fact form a chain
      for (; handler; handler = handler.next as MessageHandler | undefined) {
        result = await lastValueFrom(this.transformToObservable(await handler(payload, record)), { defaultValue: undefined });
      }
      return result;
    };
    return requestId === undefined ? call() : withRequestId(requestId, call);
  }
}

/** For operations that fail only while a broker is down. */
async function retry(send: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= 3) throw error;
    }
  }
}
