import { FastifyAdapter } from '@nestjs/platform-fastify';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '#observability';
import {
  CHECK_CONNECTIONS_MS,
  type ClientError,
  HEADERS_MS,
  isRepeated,
  KEEP_ALIVE_MS,
  requestTarget,
  respondToClientError,
} from '#http-server';
import { PROBLEM_TYPE, problemBody, sendProblem } from './problem.js';
import { SAFE_HEADERS } from './safe-headers.js';

/** Node's maximum. */
const MAX_URL_LENGTH = 16_384;
/** How long a client may take to send its request, because a slow client occupies memory. */
const REQUEST_MS = 60_000;
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;
/** The paths of lists that users expect at the route that creates their items. */
const LISTS = new Map([
  ...['sources', 'webhooks', 'subscriptions', 'auto_subscriptions'].map((kind): [string, string] => [
    `/v1/${kind}`,
    `/v1/users/me/${kind}`,
  ]),
  ['/v1/components', '/v1/registry'],
]);

/** Fastify with the gateway's settings. Returns 405 for a known path with an unsupported method; Nest would return 404 for that, too. */
export class GatewayAdapter extends FastifyAdapter {
  private readonly routes: KnownRoutes;

  constructor(bodyLimit: number, log: Log) {
    super({
      bodyLimit,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_URL_LENGTH },
      rewriteUrl: (request: IncomingMessage) => readableUrl(requestTarget(request).path),
      genReqId: (request: IncomingMessage) => {
        const given = request.headers['x-request-id'];
        return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
      },
      forceCloseConnections: 'idle',
      return503OnClosing: false,
      // Node would respond without a body; see below
      http: { requireHostHeader: false, headersTimeout: HEADERS_MS, connectionsCheckingInterval: CHECK_CONNECTIONS_MS },
      clientErrorHandler: (error, socket) =>
        respondToClientError(error, socket, (status, detail) => unreadable(error, { status, detail }, log)),
    });
    this.routes = new KnownRoutes(this.getInstance());
    // Node would respond without a body
    const { server } = this.getInstance();
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  }

  /** RFC 9112, 3.2: a request by HTTP/1.1 names its host, and no request names several. */
  refuseWithoutOneHost(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
    if (isRepeated(request.raw, 'host')) return sendProblem(reply, { status: 400, detail: 'the header Host must be sent once' });
    if (request.headers.host !== undefined || request.raw.httpVersion !== '1.1') return undefined;
    return sendProblem(reply, { status: 400, detail: 'the header Host is required' });
  }

  /** RFC 9110, 10.1.1: the only expectation is `100-continue`; see `receiveBodies`. */
  refuseExpectation(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
    const { expect } = request.headers;
    if (expect === undefined || /^100-continue$/i.test(expect)) return undefined;
    return sendProblem(reply, { status: 417, detail: 'the header Expect can only be 100-continue' });
  }

  /** RFC 9112, 6.1. Node decodes chunks, and ignores other codings. */
  refuseTransferCoding(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
    const { 'transfer-encoding': coding } = request.headers;
    if (coding === undefined || /^chunked$/i.test(coding)) return undefined;
    return sendProblem(reply, { status: 501, detail: 'the header Transfer-Encoding can only be chunked' });
  }

  override setNotFoundHandler(): ReturnType<FastifyAdapter['setNotFoundHandler']> {
    return this.getInstance().setNotFoundHandler((request, reply) => this.refuseUnknown(request, reply));
  }

  refuseUnknown(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const path = pathOf(request);
    const methods = this.routes.methodsOf(path);
    // a route with a wildcard has refused a path that it does not have
    if (methods.length === 0 || methods.includes(request.method))
      return sendProblem(reply, { status: 404, detail: `no such path: ${path}` });
    reply.header('allow', methods.join(', '));
    const list = request.method === 'GET' ? LISTS.get(path.replace(/\/+$/, '')) : undefined;
    const hint = list === undefined ? '' : `; the list is at ${list}`;
    return sendProblem(reply, { status: 405, detail: `${request.method} is not allowed; allowed: ${methods.join(', ')}${hint}` });
  }
}

/** The response to a request that Node could not read. */
function unreadable(
  err: ClientError,
  problem: { status: number; detail: string },
  log: Log,
): { headers: Record<string, string>; body: string } {
  const requestId = randomUUID();
  log.debug({ request_id: requestId, status: problem.status, err }, 'request.unreadable');
  return {
    headers: { ...SAFE_HEADERS, 'x-request-id': requestId, 'content-type': PROBLEM_TYPE },
    body: `${JSON.stringify(problemBody(problem, requestId))}\n`,
  };
}

/** All routes with their methods, to distinguish a known path with a wrong method from an unknown path. */
export class KnownRoutes {
  private readonly routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  constructor(fastify: FastifyInstance) {
    fastify.addHook('onRoute', ({ url, method }) => {
      const route = this.routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
      for (const each of [method].flat()) route.methods.add(each);
      this.routes.set(url, route);
    });
  }

  /** The methods that the path supports; empty if the path is unknown. */
  methodsOf(path: string): string[] {
    const methods = new Set<string>();
    for (const { pattern, methods: known } of this.routes.values()) if (pattern.test(path)) for (const method of known) methods.add(method);
    return [...methods].filter((method) => method !== 'OPTIONS').sort();
  }
}

function patternOf(url: string): RegExp {
  const source = url
    .replace(/\/+$/, '')
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\\\*$/, '.*')))
    .join('/');
  return new RegExp(`^${source}/?$`);
}

/**
 * Rewrites the path for the router: `$errors` may be encoded or not, and malformed percent-encoding is taken literally. Another target, such as `http://`,
 * becomes a path that does not exist: Fastify would respond to it itself, without hooks.
 */
function readableUrl(url: string): string {
  const [target = '', ...query] = url.split('?');
  const path = target.startsWith('/') ? target : `/${target}`;
  let readable = path.replace(/%24errors/i, '$$errors');
  try {
    decodeURIComponent(readable);
  } catch {
    readable = readable.replaceAll('%', '%25');
  }
  return [readable, ...query].join('?');
}

const pathOf = (request: FastifyRequest): string => request.url.split('?', 1)[0] ?? '/';
