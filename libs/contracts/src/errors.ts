/**
 * Expected errors. Their code, message and details travel over Kafka; only the gateway maps codes to
 * HTTP statuses. Any other Error is a bug: it is logged with its stack and reaches the caller as `internal`.
 */
export type ErrorCode =
  'invalid' | 'not_found' | 'conflict' | 'unprocessable' | 'too_large' | 'too_many_requests' | 'timeout' | 'unavailable' | 'internal';

/** One invalid field of a request. */
export interface FieldProblem {
  field: string;
  message: string;
  /** In a batch: which of its items. */
  index?: number;
}

export interface ErrorDetails {
  errors?: FieldProblem[];
  /** Of `unavailable`: the cause, for users. Names nothing internal. */
  reason?: string;
  [name: string]: unknown;
}

export class SluiceError extends Error {
  override readonly name: string = 'SluiceError';
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
  }
}

/** The resource does not exist, or belongs to another account; the caller cannot distinguish the two. */
export class NotFound extends SluiceError {
  constructor(what: string, id?: string) {
    super('not_found', id === undefined ? `${what} not found` : `${what} ${id} not found`);
  }
}

/** The request is malformed. Lists every invalid field. */
export class Invalid extends SluiceError {
  constructor(problems: FieldProblem[] | string) {
    super(
      'invalid',
      typeof problems === 'string' ? problems : problems.map((problem) => problem.message).join('; '),
      typeof problems === 'string' ? {} : { errors: problems },
    );
  }
}

/** The requests of the caller, or of all callers together, exceed a limit of concurrent work. */
export class TooManyRequests extends SluiceError {
  constructor(what: string) {
    super('too_many_requests', what);
  }
}

export class TimedOut extends SluiceError {
  constructor(what: string) {
    super('timeout', what);
  }
}

/** `reason`: the cause, for users. */
export class Unavailable extends SluiceError {
  constructor(what: string, reason?: string) {
    super('unavailable', what, reason === undefined ? {} : { reason });
  }
}
