import type { Service } from '#contracts';
import type { Log } from '#observability';
import type { Consumers } from './consumers.js';
import type { KafkaClient } from './kafka.js';
import type { LogRecord } from './log-record.js';
import type { Publisher } from './publisher.js';

export interface TransportOptions {
  service: Service;
  kafka: KafkaClient;
  publisher: Publisher;
  consumers: Consumers;
  log: Log;
  /** Whether a handler's error will pass by itself (a database that is away): the record is then tried again for as long as it takes. */
  isTransient(error: unknown): boolean;
}

/** A decorated method, with everything that Nest puts around it. record: the one that it is called for, unless it gets a batch. */
export type Handler = (payload: unknown, record?: LogRecord) => Promise<unknown>;
