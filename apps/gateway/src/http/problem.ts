import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as contracts from '#contracts';
import { type ErrorCode, SluiceError, Unavailable } from '#contracts';
import { isTransient, outageOf } from '#database';
import { LOG, type Log } from '#observability';
import { typeProblem } from './content-types.js';

export class FieldProblem implements contracts.FieldProblem {
  @ApiProperty() field!: string;
  @ApiProperty() message!: string;
  @ApiPropertyOptional({ type: 'integer', description: 'In a batch of events: the index of the bad one.' }) index?: number;
}

/** An error as the API returns it: RFC 9457, plus `error`, the string that clients of the original API read. */
export class Problem {
  @ApiProperty({ example: 'about:blank' }) type!: string;
  @ApiProperty({ description: 'The name of the HTTP status.' }) title!: string;
  @ApiProperty({ type: 'integer' }) status!: number;
  @ApiProperty({ description: 'A description of the problem.' }) detail!: string;
  @ApiProperty({ description: 'The same text as `detail`.' }) error!: string;
  @ApiProperty({ description: 'The id of the request in the logs; also in the header X-Request-Id.' }) request_id!: string;
  @ApiPropertyOptional({ type: [FieldProblem], description: 'The invalid fields of a malformed request.' }) errors?: FieldProblem[];
}

/** Maps error codes to HTTP statuses. */
const STATUS: Record<ErrorCode, number> = {
  invalid: 400,
  not_found: 404,
  conflict: 409,
  unprocessable: 422,
  too_large: 413,
  too_many_requests: 429,
  timeout: 504,
  unavailable: 503,
  internal: 500,
};

/** The text of a service's error for users. The texts of internal errors name internals, so they are replaced. */
export function problemOf(error: SluiceError): Shown {
  const status = STATUS[error.code];
  if (error.code === 'timeout') return { status, detail: 'the request timed out; it may still take effect' };
  if (error.code === 'unavailable') {
    const { reason } = error.details;
    return { status, detail: `the service is temporarily unavailable${reason === undefined ? '' : `, because ${reason}`}; retry later` };
  }
  if (error.code === 'internal') return { status, detail: 'internal error' };
  return { status, detail: error.message, errors: error.details.errors };
}

interface Shown {
  status: number;
  detail: string;
  errors?: FieldProblem[];
}

export const problemBody = ({ status, detail, errors }: Shown, requestId: string): Problem => ({
  type: 'about:blank',
  title: STATUS_CODES[status] ?? 'Error',
  status,
  detail,
  error: detail,
  request_id: requestId,
  errors,
});

export const PROBLEM_TYPE = 'application/problem+json';

export function sendProblem(reply: FastifyReply, shown: Shown): FastifyReply {
  const problem = problemBody(shown, reply.request.id);
  // bytes: to a string, Fastify would add a charset, which this type does not have
  return reply
    .status(shown.status)
    .header('content-type', PROBLEM_TYPE)
    .send(Buffer.from(JSON.stringify(problem)));
}

/** When a client should repeat what the service could not do for now. */
const RETRY_S = 5;

/**
 * Sends 429 because too much work is in progress, or because a daily quota is used up. This is another policy than the limit of requests per key: nothing of
 * it is left until the client may retry. The headers are those of draft-ietf-httpapi-ratelimit-headers.
 */
export function sendBusy(reply: FastifyReply, detail: string, seconds = RETRY_S): FastifyReply {
  addTo(reply, 'ratelimit-policy', `"busy";q=0;w=${seconds}`);
  addTo(reply, 'ratelimit', `"busy";r=0;t=${seconds}`);
  reply.header('retry-after', String(seconds));
  return sendProblem(reply, { status: 429, detail });
}

/** Adds an item to a header that is a list. */
function addTo(reply: FastifyReply, header: string, item: string): void {
  const given = reply.getHeader(header);
  reply.header(header, given === undefined ? item : `${String(given)}, ${item}`);
}

/** The URL of a request without the values of its query: that of a webhook may contain a password. */
export const loggedUrl = ({ url }: FastifyRequest): string => url.replace(/(?<==)[^&]*/g, '…');

/** The status of an error of Nest, or of Fastify: a body that is too large, malformed or of another type. */
function statusOf(exception: unknown): number | undefined {
  if (exception instanceof HttpException) return exception.getStatus();
  const status = (exception as { statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : undefined;
}

/** Handles the errors of all routes. An unexpected error is a bug: it is logged with its stack, and the client gets only a 500. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(LOG) private readonly log: Log) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const { log } = this;
    const { id, method } = reply.request;
    const url = loggedUrl(reply.request);
    if (exception instanceof SluiceError) {
      const problem = problemOf(exception);
      if (problem.status >= 500) log.warn({ request_id: id, method, url, err: exception }, 'request.failed');
      if (problem.status === 429) return void sendBusy(reply, problem.detail, exception.details.retry_after_s);
      if (problem.status === 503) reply.header('retry-after', String(RETRY_S));
      return void sendProblem(reply, problem);
    }
    const status = statusOf(exception);
    if (status !== undefined) {
      // Fastify's text about a content type that it cannot parse does not help
      const detail = (status === 415 && typeProblem(reply.request)) || (exception as Error).message;
      return void sendProblem(reply, { status, detail });
    }
    if (isTransient(exception)) {
      log.warn({ request_id: id, method, url, err: exception }, 'request.failed');
      reply.header('retry-after', String(RETRY_S));
      return void sendProblem(reply, problemOf(new Unavailable('', outageOf(exception))));
    }
    log.error({ request_id: id, method, url, err: exception }, 'request.failed');
    void sendProblem(reply, { status: 500, detail: 'internal error' });
  }
}
