import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { HTTP_CODE_METADATA } from '@nestjs/common/constants.js';
import type { FastifyRequest } from 'fastify';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { SluiceError, type UserId } from '#contracts';
import { withPatience } from '#messaging';
import { LOG, type Log } from '#observability';
import { problemBody, problemOf } from '../http/problem.js';
import { IdempotencyRepository, type StoredResponse } from './idempotency.repository.js';
import { hasSecretResponse, seal } from './sealed-response.js';

/**
 * A request with an `Idempotency-Key` whose service does not reply in time:
 *
 *   504 to the client ─► the key stays taken, a repeat gets 409 ─► the late reply is stored ─► a repeat gets it
 *
 * Without this, a repeat after the 504 would do the work again while the first is still in progress.
 */
@Injectable()
export class LateResponses implements NestInterceptor {
  constructor(
    private readonly requests: IdempotencyRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { idempotencyKey: key, caller } = request;
    if (key === undefined || !caller) return next.handle();
    const status = (Reflect.getMetadata(HTTP_CODE_METADATA, context.getHandler()) as number | undefined) ?? 201;
    return from(
      new Promise((resolve, reject) => {
        let isLate = false;
        const onSlow = (error: SluiceError) => {
          isLate = true;
          request.continuesAfterResponse = true;
          reject(error);
        };
        const store = (response: StoredResponse | null) => (isLate ? this.store(caller.account.id, key, response) : undefined);
        withPatience(onSlow, () => lastValueFrom(next.handle(), { defaultValue: undefined })).then(
          (body) => {
            resolve(body);
            const text = body === undefined ? null : JSON.stringify(body);
            const kept = text !== null && hasSecretResponse(request) ? seal(text, caller.apiKey) : text;
            void store({ status, content_type: text === null ? null : 'application/json; charset=utf-8', body: kept });
          },
          (error: Error) => {
            reject(error);
            void store(storedProblem(error, request.id));
          },
        );
      }),
    );
  }

  /** null: the work failed, and a repeat may run again. */
  private async store(accountId: UserId, key: string, response: StoredResponse | null): Promise<void> {
    try {
      if (response) await this.requests.keep(accountId, key, response);
      else await this.requests.release(accountId, key);
    } catch (err) {
      this.log.warn({ account_id: accountId, err }, 'request.late-response-not-stored');
    }
  }
}

function storedProblem(error: Error, requestId: string): StoredResponse | null {
  if (!(error instanceof SluiceError)) return null;
  const problem = problemOf(error);
  return problem.status >= 500
    ? null
    : { status: problem.status, content_type: 'application/problem+json', body: JSON.stringify(problemBody(problem, requestId)) };
}
