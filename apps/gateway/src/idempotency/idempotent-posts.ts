import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/problem.js';
import type { IdempotencyRepository } from './idempotency.repository.js';
import { hasSecretResponse, seal, unseal } from './sealed-response.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while this request is the first with its key. */
    idempotencyKey?: string;
    /** The work continues after the response: its result is stored with the key (see LateResponses). */
    continuesAfterResponse?: boolean;
  }
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * A POST with an `Idempotency-Key` that is repeated within 24 h returns the response of the first one and has no effect. With another payload it is
 * 422; while the first one is in progress it is 409, even after a 504. Other 5xx responses are not stored: the repeat runs again.
 */
export function idempotentPosts(fastify: FastifyInstance, requests: IdempotencyRepository): void {
  fastify.addHook('preHandler', async (request, reply) => {
    const key = request.headers['idempotency-key'];
    if (request.method !== 'POST' || key === undefined || !request.caller) return;
    if (typeof key !== 'string' || !KEY.test(key)) {
      return sendProblem(reply, { status: 400, detail: 'the header Idempotency-Key must be 1 to 255 visible ASCII characters' });
    }
    const claim = await requests.claim(request.caller.account.id, key, fingerprint(request));
    if (claim === 'claimed') {
      request.idempotencyKey = key;
      return;
    }
    if (claim === 'other payload')
      return sendProblem(reply, { status: 422, detail: 'this Idempotency-Key was used with a different request' });
    if (claim === 'in flight') {
      reply.header('retry-after', '1');
      return sendProblem(reply, { status: 409, detail: 'the first request with this Idempotency-Key is still in progress' });
    }
    const body = claim.body !== null && hasSecretResponse(request) ? unseal(claim.body, request.caller.apiKey) : claim.body;
    if (body === undefined) return sendProblem(reply, { status: 422, detail: 'this Idempotency-Key was used with a different API key' });
    reply.header('idempotency-replayed', 'true');
    if (claim.content_type) reply.header('content-type', claim.content_type);
    return reply.status(claim.status).send(body === null ? undefined : Buffer.from(body));
  });

  fastify.addHook('onSend', async (request, reply, payload) => {
    const { idempotencyKey: key, caller } = request;
    if (key === undefined || !caller) return payload;
    request.idempotencyKey = undefined;
    if (request.continuesAfterResponse) return payload;
    if (reply.statusCode >= 500) {
      await requests.release(caller.account.id, key);
    } else {
      const contentType = reply.getHeader('content-type');
      const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : null;
      await requests.keep(caller.account.id, key, {
        status: reply.statusCode,
        content_type: typeof contentType === 'string' ? contentType : null,
        body: body !== null && hasSecretResponse(request) ? seal(body, caller.apiKey) : body,
      });
    }
    return payload;
  });
}

/** Identifies equal requests. For events, it includes headers: those beginning with `ce-`, and the content type, which determines how to read the body. */
function fingerprint({ method, url, body, headers }: FastifyRequest): Buffer {
  const hash = createHash('sha256').update(`${method} ${url}\n`);
  if (!Buffer.isBuffer(body)) return hash.update(JSON.stringify(body ?? null)).digest();
  const names = Object.keys(headers).filter((name) => name === 'content-type' || name.startsWith('ce-'));
  return hash
    .update(JSON.stringify(names.sort().map((name) => [name, headers[name]])))
    .update(body)
    .digest();
}
