import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { SluiceError } from '#contracts';
import { isRepeated } from '#http-server';
import { withLateReplies } from '#messaging';
import { LOG, type Log } from '#observability';
import { JSON_TYPE } from '../http/list-body.js';
import { PROBLEM_TYPE, problemBody, problemOf, sendProblem } from '../http/problem.js';
import { type FirstRequest, type HeldKey, IdempotencyRepository, type StoredResponse } from './idempotency.repository.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while this request is the first with its `Idempotency-Key`. */
    heldKey?: HeldKey;
    /** Set if this request repeats one whose response is not stored. */
    repeats?: FirstRequest;
    /** The work continues after the response: its result is stored with the key (see LateResponses). */
    continuesAfterResponse?: boolean;
  }
  interface FastifyContextConfig {
    /** The response contains a secret that is stored nowhere else. */
    secretResponse?: boolean;
    /** The handler returns the response to a repeat without acting again, or never acts. */
    repeatable?: boolean;
  }
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * A POST with an `Idempotency-Key` that is repeated within 24 h returns the response of the first one and has no effect. With another payload it is
 * 422; while the first one is in progress it is 409, even after a 504. After a response that shows that nothing was done, the key is free again.
 */
export function idempotentPosts(fastify: FastifyInstance, requests: IdempotencyRepository): void {
  fastify.addHook('preHandler', async (request, reply) => {
    const key = request.headers['idempotency-key'];
    if (request.method !== 'POST' || key === undefined || !request.caller) return;
    if (typeof key !== 'string' || !KEY.test(key)) {
      const must = isRepeated(request.raw, 'idempotency-key') ? 'be sent once' : 'be 1 to 255 visible ASCII characters';
      return sendProblem(reply, { status: 400, detail: `the header Idempotency-Key must ${must}` });
    }
    const claim = await requests.claim(request.caller.account.id, key, fingerprint(request));
    if (claim === 'other payload')
      return sendProblem(reply, { status: 422, detail: 'this Idempotency-Key was used with a different request' });
    if ('retryAfterSeconds' in claim) {
      reply.header('retry-after', String(claim.retryAfterSeconds));
      return sendProblem(reply, { status: 409, detail: 'the first request with this Idempotency-Key is still in progress' });
    }
    if ('held' in claim) {
      request.heldKey = claim.held;
      return;
    }
    const { stored, first } = claim;
    if (stored.body === null && isRepeatable(request)) {
      request.repeats = first;
      return;
    }
    const body = stored.body !== null && hasSecretResponse(request) ? unseal(stored.body, request.caller.apiKey) : stored.body;
    if (body === undefined) return sendProblem(reply, { status: 422, detail: 'this Idempotency-Key was used with a different API key' });
    reply.header('idempotency-replayed', 'true');
    if (stored.content_type) reply.header('content-type', stored.content_type);
    return reply.status(stored.status).send(body === null ? undefined : Buffer.from(body));
  });

  fastify.addHook('onSend', async (request, reply, payload) => {
    const { heldKey, caller, repeats } = request;
    if (repeats && reply.statusCode < 400) reply.header('idempotency-replayed', 'true');
    if (!heldKey || !caller) return payload;
    request.heldKey = undefined;
    if (request.continuesAfterResponse) return payload;
    if (hadNoEffect(reply.statusCode)) {
      await requests.release(heldKey);
    } else {
      const contentType = reply.getHeader('content-type');
      const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : null;
      const response = { status: reply.statusCode, content_type: typeof contentType === 'string' ? contentType : null, body };
      await requests.keep(heldKey, storedForm(request, caller.apiKey, response));
    }
    return payload;
  });
}

/** The client may use the key again: to correct an invalid request (400), to wait for its turn (429) and after a failure of the service. */
const hadNoEffect = (status: number): boolean => status === 400 || status === 429 || status >= 500;

/** Identifies equal requests. For events, it includes headers: those beginning with `ce-`, and the content type, which determines how to read the body. */
function fingerprint({ method, url, body, headers }: FastifyRequest): Buffer {
  const end = url.includes('?') ? url.indexOf('?') : url.length;
  // the router ignores a slash at the end
  const path = url.slice(0, url[end - 1] === '/' ? end - 1 : end);
  const hash = createHash('sha256').update(`${method} ${path}${url.slice(end)}\n`);
  if (!Buffer.isBuffer(body)) return hash.update(JSON.stringify(body ?? null)).digest();
  const names = Object.keys(headers).filter((name) => name === 'content-type' || name.startsWith('ce-'));
  return hash
    .update(JSON.stringify(names.sort().map((name) => [name, headers[name]])))
    .update(body)
    .digest();
}

/**
 * A request with an `Idempotency-Key` whose service does not reply in time:
 *
 *   504 to the client ─► the key stays taken, a repeat gets 409 ─► the late reply is stored ─► a repeat gets it
 *                                                              └─► the service refuses the expired request ─► a repeat does the work
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
    const { heldKey, caller } = request;
    if (!heldKey || !caller) return next.handle();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return from(
      new Promise((resolve, reject) => {
        /** The status of the response if it had been in time; undefined unless it is late. */
        let status: number | undefined;
        const onLate = (error: SluiceError) => {
          // as the handler has set it before its first late request: the 504 replaces it
          status ??= reply.statusCode;
          request.continuesAfterResponse = true;
          reject(error);
        };
        const store = (response: StoredResponse | null) =>
          void this.store(heldKey, response && storedForm(request, caller.apiKey, response));
        withLateReplies(onLate, () => lastValueFrom(next.handle(), { defaultValue: undefined })).then(
          (body) => {
            resolve(body);
            if (status !== undefined) store(storedBody(status, body));
          },
          (error: Error) => {
            reject(error);
            if (status !== undefined) store(storedProblem(error, request.id));
          },
        );
      }),
    );
  }

  /** null: the work failed, and a repeat may run again. */
  private async store(held: HeldKey, response: StoredResponse | null): Promise<void> {
    try {
      if (response) await this.requests.keep(held, response);
      else await this.requests.release(held);
    } catch (err) {
      this.log.warn({ account_id: held.accountId, err }, 'request.late-response-not-stored');
    }
  }
}

const storedBody = (status: number, body: unknown): StoredResponse =>
  body === undefined ? { status, content_type: null, body: null } : { status, content_type: JSON_TYPE, body: JSON.stringify(body) };

function storedProblem(error: Error, requestId: string): StoredResponse | null {
  if (!(error instanceof SluiceError)) return null;
  const problem = problemOf(error);
  return hadNoEffect(problem.status)
    ? null
    : { status: problem.status, content_type: PROBLEM_TYPE, body: JSON.stringify(problemBody(problem, requestId)) };
}

/** The configuration of a route whose response contains a secret that is stored nowhere else. */
export const SECRET_RESPONSE = { secretResponse: true } satisfies FastifyContextConfig;

const hasSecretResponse = ({ routeOptions }: FastifyRequest): boolean => routeOptions.config.secretResponse === true;

/**
 * The configuration of a route whose handler returns the response to a repeat without acting again (`IsRepeat`), or never acts. So large responses are
 * not stored. Those of all other routes are small.
 */
export const REPEATABLE = { repeatable: true } satisfies FastifyContextConfig;

const isRepeatable = ({ routeOptions }: FastifyRequest): boolean => routeOptions.config.repeatable === true;

const MOST_STORED_BYTES = 64 * 1024;

/** The response as it is stored. */
function storedForm(request: FastifyRequest, apiKey: string, { body, ...rest }: StoredResponse): StoredResponse {
  if (body === null || (isRepeatable(request) && Buffer.byteLength(body) > MOST_STORED_BYTES)) return { ...rest, body: null };
  return { ...rest, body: hasSecretResponse(request) ? seal(body, apiKey) : body };
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a response that is stored for repeated requests, so that only a caller with the same API key can read it. The key is not stored, so neither
 * the database nor its backups reveal the secret.
 */
export function seal(response: string, apiKey: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyFrom(apiKey), iv);
  const sealed = Buffer.concat([cipher.update(response, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
}

/** The response; undefined if another API key sealed it. */
export function unseal(text: string, apiKey: string): string | undefined {
  const bytes = Buffer.from(text, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', keyFrom(apiKey), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

const keyFrom = (apiKey: string): Buffer => Buffer.from(hkdfSync('sha256', apiKey, '', 'sluice idempotent answer', 32));
