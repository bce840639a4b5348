import { AsyncLocalStorage } from 'node:async_hooks';
import type { LoggerService } from '@nestjs/common';
import { type Logger, pino } from 'pino';
import { withSourcePositions } from './source-positions.js';

/** One wide line per unit of work, named like a fact: `log.info({ delivery_id, status }, 'delivery.attempted')`. `error` means that a person must act. */
export type Log = Logger;
/** Injection token of the service's log. */
export const LOG = Symbol('log');

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/**
 * level: defaults to SLUICE_LOG_LEVEL. An unknown level is treated as `info`, so that the service can report it.
 *
 * reasonOf: of an error that is not a bug, such as that of a store that is down. The line then has `reason` instead of `err`, and no stack.
 */
export function createLog(
  service: string,
  level: string = process.env.SLUICE_LOG_LEVEL || 'info',
  reasonOf: (error: unknown) => string | undefined = () => undefined,
): Log {
  const known = LOG_LEVELS.find((each) => each === level.toLowerCase());
  return pino({
    level: known ?? 'info',
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (fields) => withReason(fields, reasonOf) },
    serializers: { err: describeError, stack: (stack: unknown) => withSourcePositions(stack) },
    mixin: () => {
      const requestId = currentRequestId();
      return requestId === undefined ? {} : { request_id: requestId };
    },
  });
}

function withReason(
  { err, ...fields }: Record<string, unknown>,
  reasonOf: (error: unknown) => string | undefined,
): Record<string, unknown> {
  if (err === undefined) return fields;
  const reason = reasonOf(err);
  return reason === undefined ? { ...fields, err } : { ...fields, reason: fields['reason'] ?? reason };
}

/** Properties with which PostgreSQL quotes the values of rows, and statements. */
const QUOTING = new Set(['detail', 'where', 'internalQuery']);

/** Of the properties that libraries add to an error, only texts, numbers and booleans: others contain connections, the parameters of statements or requests. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const isPlain = ([name, value]: [string, unknown]) => value !== null && typeof value !== 'object' && !QUOTING.has(name);
  const plain = Object.entries(pino.stdSerializers.err(error)).filter(isPlain);
  return {
    ...Object.fromEntries(plain.map(([name, value]) => [name, name === 'stack' ? withSourcePositions(value) : value])),
    ...(error instanceof AggregateError && { aggregateErrors: error.errors.map(describeError) }),
  };
}

const storage = new AsyncLocalStorage<string>();

/** Runs `work` on behalf of a request: the request id is added to every log line and every message sent from there. */
export const withRequestId = <T>(requestId: string, work: () => T): T => storage.run(requestId, work);

export const currentRequestId = (): string | undefined => storage.getStore();

/** Writes Nest's lines to our log; its start-up messages at level debug. */
export class NestLog implements LoggerService {
  constructor(private readonly out: Log) {}
  log(message: unknown, ...context: unknown[]): void {
    this.debug(message, ...context);
  }
  debug(message: unknown, ...context: unknown[]): void {
    this.out.debug({ context: context.at(-1) }, String(message));
  }
  verbose(message: unknown, ...context: unknown[]): void {
    this.out.trace({ context: context.at(-1) }, String(message));
  }
  warn(message: unknown, ...context: unknown[]): void {
    this.out.warn({ context: context.at(-1) }, String(message));
  }
  error(message: unknown, ...context: unknown[]): void {
    const error = message instanceof Error ? message : undefined;
    this.out.error({ err: error, context: context.at(-1), stack: error ? undefined : context[0] }, String(error?.message ?? message));
  }
}
