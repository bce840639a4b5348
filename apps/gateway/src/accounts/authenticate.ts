import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRepeated } from '#http-server';
import type { AccountsService } from './accounts.service.js';
import { sendProblem } from '../http/problem.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** As of KnownAccount. */
    callerKnownUntil?: number;
  }
}

const BEARER = /^bearer +(\S+) *$/i;

/** Decided by the matched route, not by the path as sent: the router reads `/%761` as `/v1`. */
const isBelowApi = ({ routeOptions, url }: FastifyRequest): boolean => /^\/v1(?:[/?]|$)/.test(routeOptions.url ?? url);

/**
 * Returns a hook that responds below `/v1` with 401, or 403 if the account is suspended. It runs twice: before anything else is checked, so that such a
 * caller does not learn which paths exist, and after everything that a request waits for. The second time, it does nothing unless the account has to be read
 * again. Without this second check, a client that sends its body slowly could use a revoked key for up to a minute, for example to create another one.
 */
export function authentication(accounts: AccountsService): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return async (request, reply) => {
    const { callerKnownUntil = 0 } = request;
    if (performance.now() < callerKnownUntil || !isBelowApi(request)) return;
    // a proxy may have checked another one of several
    const isAmbiguous = isRepeated(request.raw, 'authorization');
    const apiKey = isAmbiguous ? undefined : BEARER.exec(request.headers.authorization ?? '')?.[1];
    const account = apiKey === undefined ? undefined : await accounts.authenticate(apiKey);
    if (apiKey !== undefined && account) {
      if (account.suspended_at !== null) return sendProblem(reply, { status: 403, detail: 'this account is suspended' });
      request.caller = { account, apiKey, scope: account.scope };
      request.callerKnownUntil = account.until;
      return;
    }
    reply.header('www-authenticate', 'Bearer');
    const required = isAmbiguous
      ? 'the header Authorization must be sent once'
      : 'an API key is required: send the header "Authorization: Bearer <API key>"';
    const why = apiKey === undefined ? required : 'this API key is malformed, unknown or revoked';
    return sendProblem(reply, { status: 401, detail: why });
  };
}
