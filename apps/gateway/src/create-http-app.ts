import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { AccountPace, BYTES_PER_UNIT, MS_PER_UNIT } from '#fairness';
import { Messages } from '#messaging';
import { type Log, NestLog, withRequestId } from '#observability';
import {
  closeBehindUpgrade,
  closeUnreadConnections,
  deferContinue,
  dropUnreadBody,
  endConnectionsOnClose,
  handleInOrder,
  limitConnections,
} from '#http-server';
import { AccountsService } from './accounts/accounts.service.js';
import { authentication } from './accounts/authenticate.js';
import { GatewayConfig } from './gateway.config.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { idempotentPosts } from './idempotency/idempotent-posts.js';
import { delayStrangers } from './limits/delay-strangers.js';
import { chargeReplies, takeTurns } from './limits/fair-turns.js';
import { limitRequests } from './limits/rate-limit.js';
import { queueRequests } from './limits/request-queues.js';
import { GatewayAdapter } from './http/gateway-adapter.js';
import { receiveBodies } from './http/received-bodies.js';
import { readJsonBodies } from './http/request-bodies.js';
import { serveDocs, showDocsToBrowsers } from './http/openapi.js';
import { loggedUrl, ProblemFilter } from './http/problem.js';
import { checkQueries } from './http/queries.js';
import { RequestPipe } from './http/request.pipe.js';
import { SAFE_HEADERS } from './http/safe-headers.js';
import { enforceScopes } from './http/scopes.js';
import { noticeEndOfWork } from './http/work-in-progress.js';

/** The HTTP side of the gateway: hooks, pipes and filters of all routes, in the order in which a request passes them. */
export async function createHttpApp(module: DynamicModule, log: Log): Promise<NestFastifyApplication> {
  const config = GatewayConfig.read();
  const adapter = new GatewayAdapter(config.maxBodyBytes, log);
  const fastify = adapter.getInstance();
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: new NestLog(log),
    bodyParser: false,
    abortOnError: false,
  });
  limitConnections(fastify.server);
  closeUnreadConnections(fastify.server);
  endConnectionsOnClose(fastify.server);
  handleInOrder(fastify.server);
  closeBehindUpgrade(fastify.server);
  deferContinue(fastify.server);
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...SAFE_HEADERS, 'x-request-id': request.id });
    withRequestId(request.id, done);
  });
  fastify.addHook('onRequest', (request, reply, done) => void (adapter.refuseWithoutOneHost(request, reply) ?? done()));
  const authenticate = authentication(app.get(AccountsService));
  fastify.addHook('onRequest', authenticate);
  delayStrangers(fastify);
  fastify.addHook(
    'onRequest',
    (request, reply, done) => void (adapter.refuseExpectation(request, reply) ?? adapter.refuseTransferCoding(request, reply) ?? done()),
  );
  limitRequests(fastify, config.requestsPerMinute);
  // before their body is read
  fastify.addHook('onRequest', async (request, reply) => (request.is404 ? adapter.refuseUnknown(request, reply) : undefined));
  noticeEndOfWork(app, fastify);
  const pace = app.get(AccountPace);
  receiveBodies(fastify, config.maxBodyBytes, (owner, cost) => pace.spend(owner, cost / BYTES_PER_UNIT));
  takeTurns(fastify, pace);
  chargeReplies(app.get(Messages), pace);
  queueRequests(fastify);
  // again, if the request has waited
  fastify.addHook('preParsing', authenticate);
  enforceScopes(fastify);
  checkQueries(fastify);
  idempotentPosts(fastify, app.get(IdempotencyRepository));
  logRequests(fastify, log);
  fastify.addHook('onSend', (request, reply, payload, done) => {
    if (reply.hasHeader('connection')) keepConnection(reply);
    dropUnreadBody(request.raw, reply.raw);
    done(null, isNewJson(reply) && (typeof payload === 'string' || Buffer.isBuffer(payload)) ? withNewline(payload) : payload);
  });
  readJsonBodies(fastify, (owner, ms) => pace.spend(owner, ms / MS_PER_UNIT));
  app.useGlobalPipes(new RequestPipe({ validateCustomDecorators: true }));
  app.useGlobalFilters(new ProblemFilter(log));
  showDocsToBrowsers(fastify);
  serveDocs(app, fastify);
  return app;
}

/** Fastify closes it when it has not parsed a body, as if the rest of that could still arrive. The raw response has the header if the server is to close. */
function keepConnection(reply: FastifyReply): void {
  const ofServer = reply.raw.getHeader('connection');
  // removes both
  reply.removeHeader('connection');
  if (ofServer !== undefined) reply.raw.setHeader('connection', ofServer);
}

/** A document with an ETag is sent as it was written. */
const isNewJson = (reply: FastifyReply): boolean =>
  !reply.hasHeader('etag') && /^application\/(problem\+)?json\b/.test(String(reply.getHeader('content-type')));

/** So that the prompt of a shell begins on its own line. */
const withNewline = (text: string | Buffer): string | Buffer =>
  typeof text === 'string' ? `${text}\n` : Buffer.concat([text, Buffer.from('\n')]);

function logRequests(fastify: FastifyInstance, log: Log): void {
  fastify.addHook('onResponse', (request, reply, done) => {
    const fields = {
      request_id: request.id,
      method: request.method,
      url: loggedUrl(request),
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      account_id: request.caller?.account.id,
    };
    if (reply.statusCode >= 500) log.warn(fields, 'request.completed');
    else log.debug(fields, 'request.completed');
    done();
  });
}
