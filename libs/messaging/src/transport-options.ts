import type { Service } from '#contracts';
import type { Log } from '#observability';
import type { SecretBox } from '#secrets';
import type { Consumers } from './consumers.js';
import type { KafkaClient } from './kafka.js';
import type { LogRecord } from './log-record.js';
import type { Publisher } from './publisher.js';
import type { Restores } from './restores.js';

export interface TransportOptions {
  service: Service;
  kafka: KafkaClient;
  publisher: Publisher;
  consumers: Consumers;
  log: Log;
  restores?: Restores;
  /** For requests that carry secrets. */
  box: SecretBox;
  /** Whether the error of a handler is transient (such as a database that is down): the record is then retried until it succeeds. */
  isTransient(error: unknown): boolean;
  /** The cause of a transient error, for users. */
  outageOf(error: unknown): string;
}

/** A decorated method, with everything that Nest puts around it. record: the record of the call; undefined for a batch. */
export type Handler = (payload: unknown, record?: LogRecord) => Promise<unknown>;
