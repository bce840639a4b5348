/**
 * Expected errors. Their code, message and details travel over Kafka; only the gateway maps codes to
 * HTTP statuses. Any other Error is a bug: it is logged with its stack and reaches the caller as `internal`.
 */
export type ErrorCode =
  | 'invalid'
  | 'not_found'
  | 'conflict'
  | 'unprocessable'
  | 'too_large'
  | 'too_many_requests'
  | 'timeout'
  | 'unavailable'
  | 'internal';

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
  /** Of `too_many_requests`: in how many seconds the request may succeed; if it is known. */
  retry_after_s?: number;
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

/** The resource does not exist, or belongs to another account; the caller cannot distinguish the two. `hint`: how to find those that exist. */
export class NotFound extends SluiceError {
  constructor(what: string, id?: string, hint?: string) {
    super('not_found', `${id === undefined ? what : `${what} ${id}`} not found${hint === undefined ? '' : `; ${hint}`}`);
  }
}

/** Also if another service has reported it. */
export const isNotFound = (error: unknown): boolean => error instanceof SluiceError && error.code === 'not_found';

/** The request is malformed, also if another service has reported it. */
export const isInvalid = (error: unknown): boolean => error instanceof SluiceError && error.code === 'invalid';

/** A caller may send a hundred thousand invalid fields with long names, and the response repeats each of them. */
const MAX_PROBLEMS = 10;
const MAX_FIELD_LENGTH = 256;
const MAX_MESSAGE_LENGTH = 1024;

/**
 * The request is malformed. Lists the first ten invalid fields and, of a batch, the first one of each item. The message says the first ten, and how many more there
 * are.
 */
export class Invalid extends SluiceError {
  constructor(problems: FieldProblem[] | string) {
    if (typeof problems === 'string') {
      super('invalid', problems);
      return;
    }
    const isFirstOfItem = ({ index }: FieldProblem, n: number) => index !== undefined && index !== problems[n - 1]?.index;
    const errors = problems.filter((problem, n) => n < MAX_PROBLEMS || isFirstOfItem(problem, n)).map(shortened);
    const messages = errors.slice(0, MAX_PROBLEMS).map(({ message }) => message);
    const more = problems.length - messages.length;
    super('invalid', [...messages, ...(more > 0 ? [`and ${more} more`] : [])].join('; '), { errors });
  }
}

const shortened = ({ field, message, ...rest }: FieldProblem): FieldProblem => ({
  field: cut(field, MAX_FIELD_LENGTH),
  message: cut(message, MAX_MESSAGE_LENGTH),
  ...rest,
});

const cut = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`);

/** The requests of the caller, or of all callers together, exceed a limit of concurrent work, or the caller has used a quota. `retryAfterS`: until when. */
export class TooManyRequests extends SluiceError {
  constructor(what: string, retryAfterS?: number) {
    super('too_many_requests', what, retryAfterS === undefined ? {} : { retry_after_s: retryAfterS });
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
