import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { SluiceError, Unavailable } from '#contracts';
import { isTransient, outageOf } from '#database';
import { LOG, type Log } from '#observability';
import { problemOf, sendProblem } from './problem.js';

/** Handles the errors of all routes. An unexpected error is a bug: it is logged with its stack, and the client gets only a 500. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(LOG) private readonly log: Log) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const { log } = this;
    const { id, method, url } = reply.request;
    if (exception instanceof SluiceError) {
      const problem = problemOf(exception);
      if (problem.status >= 500) log.warn({ request_id: id, method, url, err: exception }, 'request.failed');
      if (problem.status === 503 || problem.status === 429) reply.header('retry-after', '5');
      return void sendProblem(reply, problem);
    }
    if (exception instanceof HttpException) return void sendProblem(reply, { status: exception.getStatus(), detail: exception.message });
    const statusCode = (exception as { statusCode?: unknown } | null)?.statusCode;
    // errors of Fastify: a body that is too large, malformed or of another type
    if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
      return void sendProblem(reply, { status: statusCode, detail: (exception as Error).message });
    }
    if (isTransient(exception)) {
      log.warn({ request_id: id, method, url, err: exception }, 'request.failed');
      reply.header('retry-after', '5');
      return void sendProblem(reply, problemOf(new Unavailable('', outageOf(exception))));
    }
    log.error({ request_id: id, method, url, err: exception }, 'request.failed');
    void sendProblem(reply, { status: 500, detail: 'internal error' });
  }
}
