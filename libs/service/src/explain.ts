import { ConfigError } from '#config';
import { SluiceError } from '#contracts';
import { explainDatabaseError, isTransient, SchemaTooNew } from '#database';
import { explainKafkaError, isOfKafka, reasonOf } from '#messaging';
import type { Log } from '#observability';
import { SecretsKeyProblem } from '#secrets';

/** The variables with an address on which a service listens. If it is a name that does not exist, the error resembles that of a store. */
const LISTENING = ['SLUICE_HTTP_HOST', 'SLUICE_ENDPOINTS_HOST', 'SLUICE_HEALTH_HOST'];

/** Lines that name the cause of a failure and its remedy, if the reader can fix it; undefined for a bug. */
export function explain(error: unknown): string[] | undefined {
  if (error instanceof ConfigError) return error.problems;
  if (error instanceof AggregateError) {
    const each = error.errors.map(explain);
    return each.every((lines) => lines !== undefined) ? each.flat() : undefined;
  }
  if ([SluiceError, CannotStart, SchemaTooNew, SecretsKeyProblem].some((kind) => error instanceof kind)) return [(error as Error).message];
  const { code, address, port, path, hostname } = error as Partial<Record<'code' | 'address' | 'path' | 'hostname', string>> & {
    port?: number;
  };
  const listening = hostname && LISTENING.find((variable) => process.env[variable] === hostname);
  if (listening) return [`${listening}: the name ${hostname} cannot be resolved (${code})`];
  if (code === 'EADDRINUSE') return [`port ${port} on ${address} is taken by another program`];
  if (code === 'EACCES' && port !== undefined) return [`port ${port} on ${address} may not be used by this user`];
  if (code === 'EADDRNOTAVAIL') return [`${address} is not an address of this machine`];
  if (code === 'ENOENT' && path !== undefined) return [`there is no file ${path}`];
  const explained = explainKafkaError(error) ?? explainDatabaseError(error);
  if (explained !== undefined) return [explained];
  const outage = explainOutage(error);
  return outage === undefined ? undefined : [outage];
}

/** A line about a store that is down, so that waiting helps; undefined for any other failure. */
export function explainOutage(error: unknown): string | undefined {
  if (explainKafkaError(error) !== undefined || explainDatabaseError(error) !== undefined) return undefined;
  const { name, message, code } = error as { name?: string; message?: string; code?: string };
  if (name?.startsWith('KafkaJS')) return `Kafka does not respond: ${reasonOf(error)}`;
  return isTransient(error) ? `PostgreSQL does not respond: ${message || code}` : undefined;
}

/** Why work fails that is repeated or refused, for the log: a store or a service is down, or the request is invalid. undefined for a bug, whose stack is logged. */
export function reasonForLog(error: unknown): string | undefined {
  const isExpected = isOfKafka(error) || isTransient(error) || error instanceof SluiceError;
  return isExpected ? (explainKafkaError(error) ?? (reasonOf(error) || (error as { code?: string }).code)) : undefined;
}

/** Logs why the process ends: one line per explained cause, otherwise the error with its stack under this name. */
export function logFatal(log: Log, error: unknown, name: string): void {
  const lines = explain(error);
  if (lines === undefined) log.fatal({ err: error }, name);
  else for (const line of lines) log.fatal(line);
}

/** Of a process that ends for this reason: 78 (EX_CONFIG of sysexits.h) if another try with the same configuration would fail, too. `npm start` then makes none. */
export function exitCode(error: unknown): number {
  return error instanceof ConfigError || error instanceof SecretsKeyProblem ? 78 : 1;
}

/** Why a process cannot start or continue, in one line that names the cause and the remedy. Logged without a stack. */
export class CannotStart extends Error {
  override readonly name = 'CannotStart';
}
