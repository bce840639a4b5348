import { SluiceError, UnreachableError } from '@sluice/client';

/** A problem that one sentence explains. `code` is the exit code. */
export class CliError extends Error {
  override name = 'CliError';

  constructor(
    message: string,
    readonly code: number = EXIT.failed,
  ) {
    super(message);
  }
}

export const EXIT = { failed: 1, usage: 2, auth: 3, notFound: 4, unreachable: 5, interrupted: 130 } as const;

export const usageError = (message: string): CliError => new CliError(message, EXIT.usage);

/** Whether the API has not found what the request names. */
export const isNotFound = (error: unknown): boolean => error instanceof SluiceError && error.status === 404;

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.code;
  if (error instanceof UnreachableError) return EXIT.unreachable;
  if (!(error instanceof SluiceError)) return EXIT.failed;
  if (error.status === 401 || error.status === 403) return EXIT.auth;
  return isNotFound(error) ? EXIT.notFound : EXIT.failed;
}

/** Throws a usage error instead of a 400 about this parameter, which an argument of the command has set. */
export function usageErrorOf(parameter: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof SluiceError && error.status === 400 && error.message.startsWith(`${parameter} `))
      throw usageError(`--${error.message}`);
    throw error;
  };
}

/** The text to print for an error. An unexpected error is a bug of the command line: it keeps its stack, unless the system refused something. */
export function explain(error: unknown): string {
  if (error instanceof SluiceError) {
    const hint = error.status === 401 ? '; run `sluice login`, or set SLUICE_API_KEY' : '';
    const wait =
      error.retryAfter === undefined
        ? ''
        : `; retry ${/^\d+$/.test(error.retryAfter) ? `in ${error.retryAfter} s` : `after ${error.retryAfter}`}`;
    return `${error.message}${hint}${wait}${error.status >= 500 && error.requestId ? ` (request ${error.requestId})` : ''}`;
  }
  if (error instanceof CliError || error instanceof UnreachableError) return error.message;
  if (!(error instanceof Error)) return String(error);
  return 'syscall' in error ? error.message : (error.stack ?? error.message);
}
