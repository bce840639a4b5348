import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { endpointLabel, hasOwnHosts, secondsToReset } from '#config';
import { SluiceError, TooManyRequests, type UserId } from '#contracts';
import { isTransient } from '#database';
import { SumPerKey } from '#limits';
import { isOutage } from '#messaging';
import { LOG, type Log } from '#observability';
import {
  BodyBuffer,
  CHECK_CONNECTIONS_MS,
  closeBehindUpgrade,
  closeUnreadConnections,
  closeOf,
  continueBody,
  deferContinue,
  dropUnreadBody,
  endConnectionsOnClose,
  GuessDelay,
  handleInOrder,
  HEADERS_MS,
  isRepeated,
  KEEP_ALIVE_MS,
  letClientsLeave,
  limitConnections,
  memoryBytes,
  requestTarget,
  respondToClientError,
  ResponseDelay,
} from '#http-server';
import { ServiceConfig } from '#service';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { RuntimeConfig } from '../runtime.config.js';
import { SourceLocks } from '../runs/source-locks.js';
import type { HttpReply } from '../sandbox/sandbox.js';
import { BadEncoding, decoderOf } from './content-encodings.js';
import { type EndpointResponse, EndpointsService, isEndpointKey, type RequestEvent } from './endpoints.service.js';
import { httpRun } from './http-event.js';
import { replyHeaders } from './reply-headers.js';

class BodyTooLarge extends Error {}
class TooManyChunks extends Error {}

/** The part of a request's URL behind its endpoint. */
interface RequestTarget {
  path: string;
  search: string;
  host: string | undefined;
}

/** How long a client may take to send its request, because a slow client occupies memory. */
const REQUEST_MS = 60_000;
/** For the requests of one account whose bodies are being received, or that are not stored yet: slow clients and stores must not fill the memory. */
const MAX_RECEIVING_BYTES = 64 * 1024 * 1024;
/** The memory of a request before its body, and of a small body. */
const SMALL_BODY_BYTES = 16 * 1024;
/** With more of a body unread, Node reads no further packet. It keeps an object for each unread chunk, which may be a single byte. */
const UNREAD_BYTES = 4096;
/** The most that Node reads at a time. */
const PACKET_BYTES = 64 * 1024;
/** Of a body: chunks and packets. Each takes 2 µs of the main thread, however small it is. */
const MAX_CHUNKS = 16_384;
/** Of the responses that clients of one account have not read yet. */
const MAX_SENDING_BYTES = 32 * 1024 * 1024;
/**
 * A connection that has sent more is closed after the response. Clients then close it when they have read everything, which a server cannot know otherwise:
 * the kernel takes megabytes from it at once.
 */
const KEPT_BYTES = 64 * 1024;
/**
 * Of the memory of this container or machine, for such requests of all accounts, and as much for the responses that have not been read. While they have more,
 * an account may have an equal share of that.
 */
const SHARE_OF_MEMORY = 1 / 8;
/** The Retry-After when too much of the account is waiting, and during an outage. */
const BUSY_RETRY_S = 5;
const UNREAD = 'too many responses of this account have not been read';

/** To requests that get no response from a component. */
const RESPONSES: Record<Exclude<EndpointResponse, HttpReply>, { status: number; error: string | null; retryAfterS?: () => number }> = {
  queued: { status: 200, error: null },
  'no response': { status: 400, error: 'the component ended without a response' },
  busy: { status: 429, error: 'too many runs of this account are waiting', retryAfterS: () => BUSY_RETRY_S },
  'over quota': {
    status: 503,
    error: "the account's daily quota is used up; the source will run again from 00:00 UTC",
    retryAfterS: () => secondsToReset(Date.now()),
  },
  'not run': { status: 503, error: 'the source cannot run: it was switched off or deleted' },
  stopped: { status: 504, error: 'the run was stopped at a limit, or its process ended' },
};

/** The endpoints of sources, on a separate origin: `/<endpoint key>/any/path`. Any method. */
@Injectable()
export class EndpointsServer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly server: Server;
  /** Resolves when the last request has ended; set when it closes. */
  private closed: Promise<void> | undefined;
  private readonly limiter: RateLimiterMemory | null;
  private readonly ownHosts: boolean;
  private readonly guesses = new GuessDelay();
  /** Of 429 to the requests of an account, or of an endpoint. Some senders do not heed Retry-After. */
  private readonly refusals = new ResponseDelay();
  private readonly receiving = new SumPerKey<UserId>();
  private readonly sending = new SumPerKey<UserId>();
  private readonly mostOfAll = SHARE_OF_MEMORY * memoryBytes();

  constructor(
    private readonly config: RuntimeConfig,
    private readonly endpoints: EndpointsService,
    private readonly locks: SourceLocks,
    @Inject(LOG) private readonly log: Log,
  ) {
    const { endpointRequestsPerSecond: points, endpointsUrl } = config;
    this.ownHosts = hasOwnHosts(endpointsUrl);
    this.limiter = points === null ? null : new RateLimiterMemory({ points, duration: 1 });
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      this.handle(request, response).catch((error: Error) => this.fail(request, response, error));
    };
    const timeouts = {
      requestTimeout: REQUEST_MS,
      headersTimeout: HEADERS_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
    };
    this.server = createServer({ ...timeouts, highWaterMark: UNREAD_BYTES }, handle);
    limitConnections(this.server);
    closeUnreadConnections(this.server);
    endConnectionsOnClose(this.server);
    handleInOrder(this.server);
    closeBehindUpgrade(this.server);
    deferContinue(this.server);
    this.server.on('clientError', (error, socket: Socket) =>
      respondToClientError(error, socket, (_, detail) => ({ headers: HEADERS, body: bodyOf(detail) })),
    );
  }

  /** The port on which the server listens. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { endpointsHost, endpointsPort } = this.config;
    await new Promise<void>((resolve, reject) => this.server.once('error', reject).listen(endpointsPort, endpointsHost, resolve));
  }

  /** Stops listening afterwards. Requests in progress are finished, and may still add runs, while the consumers stop. */
  async letClientsLeave(): Promise<void> {
    await letClientsLeave(this.server, ServiceConfig.read().shutdownDelayMs);
    void this.close();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.close();
    // the last request has ended: nothing adds a run any more
    await this.locks.close();
  }

  private close(): Promise<void> {
    return (this.closed ??= new Promise((resolve) => this.server.close(() => resolve())));
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isRepeated(request, 'host')) return refuse(request, response, 400, 'the header Host must be sent once');
    const { path: target, host } = requestTarget(request);
    const [, key = '', path, search = ''] = /^\/+([^/?]*)([^?]*)\??(.*)$/.exec(target) ?? [];
    const wait = isEndpointKey(key) ? await this.tooMany(key) : null;
    if (wait !== null) {
      await this.refusals.pass(key);
      return refuse(request, response, 429, 'too many requests to this endpoint', wait);
    }
    // on the host of one source, another one does not exist: they are separate origins
    const isThere = !this.ownHosts || host?.split('.', 1)[0]?.toLowerCase() === endpointLabel(key);
    // before the body is read: a client that guesses endpoints must not occupy memory
    const deployment = isThere ? await this.endpoints.find(key) : undefined;
    if (!deployment || deployment === 'busy') {
      await this.guesses.pass(request.socket.remoteAddress);
      if (!deployment) return refuse(request, response, 404, 'endpoint not found');
      throw new TooManyRequests('too many requests to unknown endpoints');
    }
    // only who knows the key sees the difference
    if (!deployment.active && !deployment.suspended) return refuse(request, response, 404, 'the source of this endpoint is paused');
    if (deployment.suspended) return refuse(request, response, 503, 'the account of this endpoint is suspended');
    const { owner_id: owner } = deployment;
    const closed = closeOf(response);
    try {
      await this.endpoints.turn(owner);
      if (this.sending.of(owner) >= MAX_SENDING_BYTES) throw new TooManyRequests(UNREAD);
    } catch (error) {
      if (error instanceof TooManyRequests) await this.refusals.pass(owner);
      throw error;
    }
    if (Number(request.headers['content-length']) > this.config.maxEndpointBodyBytes) throw new BodyTooLarge();
    const reply = await this.accept(request, response, deployment, { path: path || '/', search, host }, closed);
    if (typeof reply === 'object') return this.send(response, reply, owner, closed);
    if (reply === 'busy') await this.refusals.pass(owner);
    const { status, error, retryAfterS } = RESPONSES[reply];
    refuse(request, response, status, error, retryAfterS?.());
  }

  /** A separate method, so that the body is not kept while a refusal is delayed. */
  private async accept(
    request: IncomingMessage,
    response: ServerResponse,
    deployment: DeploymentRow,
    target: RequestTarget,
    closed: Promise<void>,
  ): Promise<EndpointResponse> {
    const reserve = this.reservation(deployment.owner_id);
    try {
      reserve(unreadBytes(request));
      const admission = await this.endpoints.admit(deployment);
      if (admission === 'busy') return 'busy';
      continueBody(request, response);
      // to its end, so that the client has finished sending when it gets the response
      const event = await this.readEvent(request, deployment.owner_id, target, reserve);
      if (admission === 'store') return await this.endpoints.store(deployment, event);
      // those that wait for their component have a limit of another kind
      reserve(0);
      return await this.endpoints.runHere(deployment, event, closed);
    } finally {
      reserve(0);
    }
  }

  /** Changes what a request occupies in the memory for its account, in bytes. Throws TooManyRequests if the account would occupy too much. */
  private reservation(owner: UserId): (bytes: number) => void {
    let reserved = 0;
    return (bytes) => {
      const grown = bytes - reserved;
      reserved = bytes;
      const sum = this.receiving.add(owner, grown);
      if (grown > 0 && (sum > MAX_RECEIVING_BYTES || this.receiving.exceedsShare(owner, this.mostOfAll)))
        throw new TooManyRequests('too many requests to endpoints of this account are being received');
    };
  }

  private async readEvent(
    request: IncomingMessage,
    owner: UserId,
    { path, search, host }: RequestTarget,
    reserve: (bytes: number) => void,
  ): Promise<RequestEvent> {
    const body = await this.readBody(request, reserve);
    const begun = performance.now();
    const headers = { ...request.headers, host };
    const run = httpRun({ method: request.method ?? 'GET', path, search, headers, body });
    this.endpoints.handled(owner, { bytes: body.length, ms: performance.now() - begun });
    // text may be several times as large as the bytes that it shows
    reserve(SMALL_BODY_BYTES + run.event.length + (run.http_body?.length ?? 0));
    return run;
  }

  private send(response: ServerResponse, reply: HttpReply, owner: UserId, closed: Promise<void>): void {
    const { length } = reply.body;
    const sum = this.sending.add(owner, length);
    if (sum > MAX_SENDING_BYTES || this.sending.exceedsShare(owner, this.mostOfAll)) {
      this.sending.add(owner, -length);
      return respond(response, 429, UNREAD, BUSY_RETRY_S);
    }
    const { socket } = response.req;
    const isLast = !response.shouldKeepAlive || socket.bytesWritten + length > KEPT_BYTES;
    if (isLast) response.setHeader('connection', 'close');
    void (isLast ? closeOf(socket) : closed).then(() => this.sending.add(owner, -length));
    forward(response, reply, { ownHost: this.ownHosts });
  }

  /** Seconds to wait if the endpoint has reached its rate limit. */
  private async tooMany(key: string): Promise<number | null> {
    try {
      await this.limiter?.consume(key);
      return null;
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
      throw refusal;
    }
  }

  private async readBody(request: IncomingMessage, reserve: (bytes: number) => void): Promise<Buffer> {
    const { maxEndpointBodyBytes } = this.config;
    const body = new BodyBuffer(maxEndpointBodyBytes, SMALL_BODY_BYTES);
    // leaving the loop early must not close the connection: the client gets an error response
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      const { capacity } = body;
      if (body.chunks === MAX_CHUNKS) throw new TooManyChunks();
      if (!body.add(chunk)) throw new BodyTooLarge();
      if (body.capacity > capacity) reserve(SMALL_BODY_BYTES + body.capacity);
    }
    const decode = decoderOf(request.headers['content-encoding']);
    if (!decode || body.bytes.length === 0) return body.bytes;
    reserve(SMALL_BODY_BYTES + body.capacity + maxEndpointBodyBytes);
    const decoded = await decode(body.bytes, maxEndpointBodyBytes);
    if (!decoded) throw new BodyTooLarge();
    return decoded;
  }

  private fail(request: IncomingMessage, response: ServerResponse, error: Error): void {
    // the client has disconnected, perhaps because it was too slow and Node has sent it a 408: there is nothing to respond to or log
    if (request.destroyed && (!request.complete || error === request.errored)) return;
    if (error instanceof BodyTooLarge)
      return refuse(request, response, 413, `the body is larger than ${this.config.maxEndpointBodyBytes} bytes`);
    if (error instanceof BadEncoding) return refuse(request, response, 400, error.message);
    if (error instanceof TooManyChunks) {
      // reading the rest would take as much time again
      response.setHeader('connection', 'close').once('finish', () => request.destroy());
      return respond(response, 413, `the body arrives in more than ${MAX_CHUNKS} chunks; send larger chunks`);
    }
    if (error instanceof TooManyRequests) return refuse(request, response, 429, error.message, BUSY_RETRY_S);
    const unavailable = isOutage(error, { isTransient });
    this.log[unavailable ? 'warn' : 'error']({ err: error }, 'endpoint.failed');
    if (!unavailable) return refuse(request, response, 500, 'internal error');
    const reason = error instanceof SluiceError && error.details.reason;
    refuse(request, response, 503, `the request was not accepted${reason ? `, because ${reason}` : ''}; retry later`, BUSY_RETRY_S);
  }
}

/** Scripts in a response cannot use this origin, because components of other accounts share it. */
const SANDBOXED = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' };
/** Of the server's own responses. */
const HEADERS = { ...SANDBOXED, 'content-type': 'application/json; charset=utf-8' };

/** The most that a request occupies before its body is read. */
function unreadBytes({ headers }: IncomingMessage): number {
  const bodyBytes = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
  return SMALL_BODY_BYTES + Math.min(bodyBytes, PACKET_BYTES);
}

/** Responds although the body may not have been read. */
function refuse(request: IncomingMessage, response: ServerResponse, status: number, message: string | null, retryAfterS?: number): void {
  dropUnreadBody(request, response);
  respond(response, status, message, retryAfterS);
}

function respond(response: ServerResponse, status: number, message: string | null, retryAfterS?: number): void {
  if (response.headersSent) return void response.end();
  if (retryAfterS !== undefined) response.setHeader('retry-after', retryAfterS);
  response.writeHead(status, HEADERS);
  response.end(message === null ? '{"success":true}\n' : bodyOf(message));
}

/** With a line break, for terminals. */
const bodyOf = (error: string): string => `${JSON.stringify({ error })}\n`;

function forward(response: ServerResponse, { status, headers, body }: HttpReply, { ownHost }: { ownHost: boolean }): void {
  response.statusCode = status >= 200 && status <= 599 ? status : 200;
  for (const [name, value] of replyHeaders(headers, { ownHost })) {
    try {
      response.setHeader(name, value);
    } catch {
      // HTTP does not allow this name or value; the rest of the response is still valid
    }
  }
  for (const [name, value] of Object.entries(SANDBOXED)) response.setHeader(name, value);
  // RFC 9110, 15.3.6: 205 has no body, either, but a length
  const sent = [204, 205, 304].includes(response.statusCode) ? Buffer.alloc(0) : body;
  // also in response to HEAD
  if (response.statusCode !== 204 && response.statusCode !== 304) response.setHeader('content-length', sent.length);
  response.end(sent);
}
