import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Log, NestLog, withRequestId } from '#observability';
import { dropUnreadBody } from '#service';
import { AccountsService } from './accounts/accounts.service.js';
import { authenticate } from './accounts/authenticate.js';
import { GatewayConfig } from './gateway.config.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { idempotentPosts } from './idempotency/idempotent-posts.js';
import { limitRequests } from './limits/rate-limit.js';
import { GatewayAdapter } from './http/gateway-adapter.js';
import { readJsonBodies } from './http/request-bodies.js';
import { serveDocs, showDocsToBrowsers } from './http/openapi.js';
import { ProblemFilter } from './http/problem.js';
import { RequestPipe } from './http/request.pipe.js';
import { enforceScopes } from './http/scopes.js';

/**
 * Sent with every response. Responses belong to one account and may contain keys and secrets, so no cache may store them. The policy is written for
 * the page `/docs`, the only HTML.
 */
const SAFE_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** The HTTP side of the gateway: hooks, pipes and filters of all routes, in the order in which a request passes them. */
export async function createHttpApp(module: DynamicModule, log: Log): Promise<NestFastifyApplication> {
  const config = GatewayConfig.read();
  const adapter = new GatewayAdapter(config.maxBodyBytes);
  const fastify = adapter.getInstance();
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: new NestLog(log),
    bodyParser: false,
    abortOnError: false,
  });
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...SAFE_HEADERS, 'x-request-id': request.id });
    withRequestId(request.id, done);
  });
  authenticate(fastify, app.get(AccountsService));
  limitRequests(fastify, config.requestsPerMinute);
  // before their body is read
  fastify.addHook('onRequest', async (request, reply) => (request.is404 ? adapter.refuseUnknown(request, reply) : undefined));
  enforceScopes(fastify);
  idempotentPosts(fastify, app.get(IdempotencyRepository));
  logRequests(fastify, log);
  fastify.addHook('onSend', (request, reply, payload, done) => {
    if (!request.raw.complete) {
      // otherwise Fastify would close the connection
      reply.removeHeader('connection');
      dropUnreadBody(request.raw);
    }
    done(null, isJson(reply) && (typeof payload === 'string' || Buffer.isBuffer(payload)) ? withNewline(payload) : payload);
  });
  readJsonBodies(fastify);
  app.useGlobalPipes(new RequestPipe({ validateCustomDecorators: true }));
  app.useGlobalFilters(new ProblemFilter(log));
  showDocsToBrowsers(fastify);
  serveDocs(app);
  return app;
}

const isJson = (reply: FastifyReply): boolean => /^application\/(problem\+)?json\b/.test(String(reply.getHeader('content-type')));

/** So that the prompt of a shell begins on its own line. */
const withNewline = (text: string | Buffer): string | Buffer =>
  typeof text === 'string' ? `${text}\n` : Buffer.concat([text, Buffer.from('\n')]);

function logRequests(
  fastify: {
    addHook: (
      name: 'onResponse',
      hook: (request: FastifyRequest, reply: { statusCode: number; elapsedTime: number }, done: () => void) => void,
    ) => void;
  },
  log: Log,
): void {
  fastify.addHook('onResponse', (request, reply, done) => {
    const fields = {
      request_id: request.id,
      method: request.method,
      url: request.url,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      account_id: request.caller?.account.id,
    };
    if (reply.statusCode >= 500) log.warn(fields, 'request.completed');
    else log.debug(fields, 'request.completed');
    done();
  });
}
