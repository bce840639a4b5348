import type { LoggerService } from '@nestjs/common';
import type { Log } from './log.js';

/** Writes Nest's lines to our log; its start-up messages at level debug. */
export class NestLog implements LoggerService {
  constructor(private readonly out: Log) {}
  log(message: unknown, ...context: unknown[]): void {
    this.out.debug({ context: context.at(-1) }, String(message));
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
