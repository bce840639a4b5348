import type { FastifyInstance } from 'fastify';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { sendProblem } from '../http/problem.js';

const WINDOW_S = 60;

/**
 * Limits the requests of each account if the operator has set a limit: an account can create keys. Each gateway counts separately. `RateLimit` headers
 * report the state.
 */
export function limitRequests(fastify: FastifyInstance, requestsPerMinute: number): void {
  if (requestsPerMinute === 0) return;
  const limiter = new RateLimiterMemory({ points: requestsPerMinute, duration: WINDOW_S });
  fastify.addHook('onRequest', async (request, reply) => {
    if (!request.caller) return;
    let state: RateLimiterRes;
    let refused = false;
    try {
      state = await limiter.consume(request.caller.account.id);
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      state = rejection;
      refused = true;
    }
    const reset = Math.ceil(state.msBeforeNext / 1000);
    reply.header('ratelimit-policy', `"default";q=${requestsPerMinute};w=${WINDOW_S}`);
    reply.header('ratelimit', `"default";r=${state.remainingPoints};t=${reset}`);
    reply.header('ratelimit-limit', String(requestsPerMinute));
    reply.header('ratelimit-remaining', String(state.remainingPoints));
    reply.header('ratelimit-reset', String(reset));
    if (!refused) return;
    reply.header('retry-after', String(reset));
    return sendProblem(reply, { status: 429, detail: `this account may send at most ${requestsPerMinute} requests per minute` });
  });
}
