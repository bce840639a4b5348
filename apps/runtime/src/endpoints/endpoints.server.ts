import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { endpointLabel, hasOwnHosts } from '#config';
import { SluiceError } from '#contracts';
import { isTransient } from '#database';
import { LOG, type Log } from '#observability';
import { closeIdleConnections, dropUnreadBody, letClientsLeave, ServiceConfig } from '#service';
import { RuntimeConfig } from '../runtime.config.js';
import { SourceLocks } from '../runs/source-locks.js';
import type { HttpReply } from '../sandbox/sandbox.js';
import { EndpointsService } from './endpoints.service.js';
import { httpEvent } from './http-event.js';
import { replyHeaders } from './reply-headers.js';

class BodyTooLarge extends Error {}

/** A client has this long to send its request: one that dribbles holds no memory of ours for longer. */
const REQUEST_MS = 60_000;
const HEADERS_MS = 10_000;
/** When a client may try again whose account has too many runs waiting. */
const BUSY_RETRY_S = 5;

/** The endpoints of sources, on an origin of their own: `/<endpoint key>/any/path`. Any method. */
@Injectable()
export class EndpointsServer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly server: Server;
  private readonly limiter: RateLimiterMemory | null;
  private readonly ownHosts: boolean;

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
    this.server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS }, handle);
    // `Expect: 100-continue`: the client waits for a word before it sends the body, and gets it in `handle` when the body is wanted
    this.server.on('checkContinue', handle);
  }

  /** Where it listens, once it does. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { endpointsHost, endpointsPort } = this.config;
    await new Promise<void>((resolve, reject) => this.server.once('error', reject).listen(endpointsPort, endpointsHost, resolve));
  }

  async beforeApplicationShutdown(): Promise<void> {
    await letClientsLeave(this.server, ServiceConfig.read().shutdownDelayMs);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    closeIdleConnections(this.server);
    await closed;
    // the last runs are those of requests
    await this.locks.close();
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = request.url ?? '/';
    const [, key = '', path, search = ''] = /^\/+([^/?]*)([^?]*)\??(.*)$/.exec(url) ?? [];
    if (Number(request.headers['content-length']) > this.config.maxEndpointBodyBytes) throw new BodyTooLarge();
    if (request.headers.expect !== undefined) response.writeContinue();
    // read before anything else, so that the answer finds a client that isn't still sending
    const body = await readBody(request, this.config.maxEndpointBodyBytes);
    const wait = await this.tooMany(key);
    if (wait !== null) {
      response.setHeader('retry-after', wait);
      return answer(response, 429, 'too many requests to this endpoint');
    }
    // on the host of one source, another one does not exist: they are separate origins
    const isThere = !this.ownHosts || request.headers.host?.split('.', 1)[0]?.toLowerCase() === endpointLabel(key);
    const deployment = isThere ? await this.endpoints.find(key) : undefined;
    if (!deployment) return answer(response, 404, 'endpoint not found');
    const event = await httpEvent({ method: request.method ?? 'GET', path: path || '/', search, headers: request.headers, body });
    const reply = await this.endpoints.accept(deployment, event);
    if (reply === 'queued') return answer(response, 200, null);
    if (reply === 'busy') {
      response.setHeader('retry-after', BUSY_RETRY_S);
      return answer(response, 429, 'too many runs of this account are waiting');
    }
    if (reply === 'unanswered') return answer(response, 400, 'the component ended without a response');
    if (reply === 'not run') return answer(response, 503, 'the source cannot run: its quota is used up, or it is switched off');
    if (reply === 'stopped') return answer(response, 504, 'the component was stopped because it reached a limit');
    forward(response, reply, { ownHost: this.ownHosts });
  }

  /** Seconds to wait when the endpoint has had its share. */
  private async tooMany(key: string): Promise<number | null> {
    try {
      await this.limiter?.consume(key);
      return null;
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
      throw refusal;
    }
  }

  private fail(request: IncomingMessage, response: ServerResponse, error: Error): void {
    // the client has gone, perhaps because it took too long (Node has told it so by a 408): there is nobody to answer, and no fault of ours
    if (request.destroyed && !request.complete) return;
    if (error instanceof BodyTooLarge) {
      // a client that waits for 100 Continue is not sending a body: it would have to be taken for the next request
      if (request.headers.expect === undefined) dropUnreadBody(request);
      else response.setHeader('connection', 'close');
      return answer(response, 413, `the body is larger than ${this.config.maxEndpointBodyBytes} bytes`);
    }
    const unavailable = isTransient(error) || (error instanceof SluiceError && (error.code === 'unavailable' || error.code === 'timeout'));
    this.log[unavailable ? 'warn' : 'error']({ err: error }, 'endpoint.failed');
    if (unavailable) response.setHeader('retry-after', '5');
    answer(response, unavailable ? 503 : 500, unavailable ? 'the request was not accepted; retry later' : 'internal error');
  }
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  // leaving the loop early must not end the connection: the client is told why
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new BodyTooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Scripts in an answer can't use this origin: what one account's component serves is no other's business. */
const SANDBOXED = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' };

function answer(response: ServerResponse, status: number, message: string | null): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { ...SANDBOXED, 'content-type': 'application/json; charset=utf-8' });
  response.end(message === null ? '{"success":true}' : JSON.stringify({ error: message }));
}

function forward(response: ServerResponse, { status, headers, body }: HttpReply, { ownHost }: { ownHost: boolean }): void {
  response.statusCode = status >= 200 && status <= 599 ? status : 200;
  for (const [name, value] of replyHeaders(headers, { ownHost })) {
    try {
      response.setHeader(name, value);
    } catch {
      // a name or value that HTTP doesn't allow: the rest of the answer is still good
    }
  }
  for (const [name, value] of Object.entries(SANDBOXED)) response.setHeader(name, value);
  const isEmpty = response.statusCode === 204 || response.statusCode === 304;
  // told to HEAD too
  if (!isEmpty) response.setHeader('content-length', body.length);
  response.end(isEmpty ? undefined : body);
}
