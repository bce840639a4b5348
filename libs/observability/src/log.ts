import { type Logger, pino } from 'pino';
import { currentRequestId } from './request-context.js';

/** One wide line per unit of work, named like a fact: `log.info({ delivery_id, status }, 'delivery.attempted')`. `error` means that a person must act. */
export type Log = Logger;
/** Injection token of the service's log. */
export const LOG = Symbol('log');

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** level: defaults to SLUICE_LOG_LEVEL. An unknown level is reported. */
export function createLog(service: string, level: string = process.env.SLUICE_LOG_LEVEL || 'info'): Log {
  const log = pinoLog(service, LEVELS.includes(level) ? level : 'info');
  if (!LEVELS.includes(level)) log.warn(`SLUICE_LOG_LEVEL must be one of ${LEVELS.join(', ')}, not "${level}"; using info`);
  return log;
}

function pinoLog(service: string, level: string): Log {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    mixin: () => {
      const requestId = currentRequestId();
      return requestId === undefined ? {} : { request_id: requestId };
    },
  });
}
