import { Invalid, SluiceError, Unavailable } from '#contracts';
import { isBrokerFailure, isRefused } from './kafka-errors.js';
import type { LogRecord } from './log-record.js';
import { LATE_MS } from './messages.js';
import { BadRecord, jsonOf, parsed } from './payload.js';
import { MAX_REPLY_BYTES, partHeader, partsOf } from './reply-parts.js';
import type { Handler, TransportOptions } from './transport.js';
import { errorToWire, HEADER, replyContext, requestContext } from './wire.js';

/** When the caller of a request stops waiting, in ms since the epoch. */
export const deadlineOf = (record: LogRecord): number => Number(record.header(HEADER.deadline) ?? Infinity);

/**
 * Handles requests (commands and queries), and announced facts, which arrive as requests, too.
 *
 *   request ─► handler ─► reply: its result, or the SluiceError; another error is a bug: logged, `internal`
 *      └─ expired ─► reply: `unavailable`, for a caller that waits for a late reply; none if no caller waits any more
 */
export class Requests {
  /** Requests whose handler has not ended. */
  private inProgress = 0;
  /** When the first request was read, in ms since the epoch. */
  private readSince?: number;

  constructor(
    private readonly handlers: ReadonlyMap<string, Handler>,
    private readonly options: TransportOptions,
  ) {}

  /** Throws BadRecord if the record is not a request. */
  async handle(record: LogRecord): Promise<void> {
    const { log, box } = this.options;
    const replyTo = record.header(HEADER.replyTo);
    const correlationId = record.header(HEADER.correlationId);
    const message = record.header(HEADER.message) ?? '';
    const fields = { message, request_id: record.header(HEADER.requestId) };
    if (!replyTo || !correlationId) throw new BadRecord('not a request: it names no topic for the reply');
    const headers: Record<string, string> = { [HEADER.correlationId]: correlationId };
    this.readSince ??= Date.now();
    const late = Date.now() - deadlineOf(record);
    if (late > 0) {
      // nobody could read it while the service was starting
      const level = deadlineOf(record) < this.readSince ? 'debug' : 'warn';
      log[level]({ ...fields, late_ms: late }, 'request.expired');
      if (late > LATE_MS) return;
      headers[HEADER.error] = errorToWire(new Unavailable('the request expired before it was handled'));
      return this.reply(replyTo, headers, Buffer.alloc(0), fields);
    }
    // a sealed request gets a sealed reply
    const isSealed = record.header(HEADER.sealed) !== undefined;
    let value: Buffer;
    this.inProgress++;
    try {
      const handler = this.handlers.get(message);
      if (!handler) {
        log.warn(fields, 'request.unknown');
        throw new Unavailable(`this version of the service does not know ${message}`, 'a service that is being upgraded');
      }
      const payload = isSealed ? parsed(box.open(String(record.value), requestContext(correlationId))) : jsonOf(record);
      const result = await handler(payload, record);
      const text = result === undefined ? '' : JSON.stringify(result);
      value = Buffer.from(isSealed ? box.seal(text, replyContext(correlationId)) : text);
      if (isSealed) headers[HEADER.sealed] = '1';
      if (value.length > MAX_REPLY_BYTES)
        throw new SluiceError('unprocessable', `the response would be larger than ${MAX_REPLY_BYTES} bytes`);
    } catch (error) {
      headers[HEADER.error] = errorToWire(this.replyError(error, fields));
      value = Buffer.alloc(0);
    } finally {
      this.inProgress--;
    }
    await this.reply(replyTo, headers, value, fields);
  }

  private async reply(topic: string, headers: Record<string, string>, value: Buffer, fields: object): Promise<void> {
    const { log, publisher } = this.options;
    try {
      const parts = partsOf(value);
      for (const part of parts) {
        const header = partHeader(part);
        const record = {
          ...{ topic, key: headers[HEADER.correlationId] ?? '', value: part.value },
          headers: header === undefined ? headers : { ...headers, [HEADER.part]: header },
        };
        await withRetries(() => publisher.send([record], { mayWait: this.inProgress > 0 && parts.length === 1 }));
      }
    } catch (err) {
      // not thrown: the handler would run twice, for a caller that has given up
      log.warn({ ...fields, err }, 'request.reply-not-sent');
    }
  }

  /** The error that the caller receives. */
  private replyError(error: unknown, fields: object): SluiceError {
    const { log, isTransient, outageOf } = this.options;
    if (error instanceof SluiceError) return error;
    if (error instanceof BadRecord) return new Invalid(error.message);
    const ofKafka = isBrokerFailure(error) && !isRefused(error);
    if (ofKafka || isTransient(error)) {
      log.warn({ ...fields, err: error }, 'request.unavailable');
      return new Unavailable('a required service is unavailable', ofKafka ? 'the message log does not respond' : outageOf(error));
    }
    log.error({ ...fields, err: error }, 'request.failed');
    return new SluiceError('internal', 'internal error');
  }
}

/** For operations that fail only while a broker is down. */
async function withRetries(send: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= 3) throw error;
    }
  }
}
