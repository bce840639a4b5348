import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify';
import { sendProblem } from './problem.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response shows a secret. */
    showsSecret?: boolean;
  }
}

/** The configuration of a route that shows a secret: a key of scope `read` may not use it. */
export const SHOWS_SECRET = { showsSecret: true } satisfies FastifyContextConfig;

/** Why the caller's key may not do this, or null. */
export function scopeProblem(request: FastifyRequest): string | null {
  if (request.caller?.scope !== 'read') return null;
  if (request.method !== 'GET' && request.method !== 'HEAD') return 'this API key has the scope read: it allows only GET';
  return request.routeOptions.config.showsSecret ? 'this API key has the scope read: it does not allow reading secrets' : null;
}

/** Enforces the scopes of API keys: after the content type of a body is known to be right (415), before it is read (400). */
export function enforceScopes(fastify: FastifyInstance): void {
  fastify.addHook('preValidation', async (request, reply) => {
    const detail = scopeProblem(request);
    return detail === null ? undefined : sendProblem(reply, { status: 403, detail });
  });
}
