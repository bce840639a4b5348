import type { FieldProblem, Problem } from './generated/index.js';

/** Sluice refused a request, or failed. */
export class SluiceError extends Error {
  override name = 'SluiceError';

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The response: a problem (RFC 9457). */
    readonly problem: Partial<Problem>,
    /** The header `Retry-After`: seconds or a date. */
    readonly retryAfter?: string,
  ) {
    super(textOf(status, problem));
  }

  /** The id of the request in Sluice's logs, if there is one. */
  get requestId(): string | undefined {
    return this.problem.request_id;
  }
}

/** There was no complete response, or one that is not from Sluice: Sluice cannot be reached. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
}

/** The description of a problem, with each bad field that the description does not name already. */
function textOf(status: number, { detail, errors }: Partial<Problem>): string {
  // something between here and Sluice may send problems in another form
  const text = typeof detail === 'string' ? detail : `the server returned ${status}`;
  const more = (Array.isArray(errors) ? (errors as (Partial<FieldProblem> | null)[]) : []).flatMap((error) => {
    if (typeof error?.message !== 'string') return [];
    return error.index === undefined ? error.message : `event ${error.index}: ${error.message}`;
  });
  return [text, ...more.filter((message) => !text.includes(message))].join('; ');
}
