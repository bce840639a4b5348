/**
 * The errors that a service means. Their code, message and details travel over Kafka; the gateway alone turns codes into
 * HTTP. Any other Error is a bug: it's logged with its stack and reaches the caller as `internal`.
 */
export type ErrorCode =
  'invalid' | 'not_found' | 'conflict' | 'unprocessable' | 'too_large' | 'too_many_requests' | 'timeout' | 'unavailable' | 'internal';

/** One bad field of a request. */
export interface FieldProblem {
  field: string;
  message: string;
}

export interface ErrorDetails {
  errors?: FieldProblem[];
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

/** The resource doesn't exist, or isn't the caller's: the two can't be told apart. */
export class NotFound extends SluiceError {
  constructor(what: string, id?: string) {
    super('not_found', id === undefined ? `${what} not found` : `${what} ${id} not found`);
  }
}

/** The request is malformed: every bad field is listed. */
export class Invalid extends SluiceError {
  constructor(problems: FieldProblem[] | string) {
    super(
      'invalid',
      typeof problems === 'string' ? problems : problems.map((problem) => problem.message).join('; '),
      typeof problems === 'string' ? {} : { errors: problems },
    );
  }
}

/** The caller, or everybody together, asks for more than is done at a time. */
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

export class Unavailable extends SluiceError {
  constructor(what: string) {
    super('unavailable', what);
  }
}
