import { LRUCache } from 'lru-cache';
import type { Agent, Dispatcher } from 'undici';
import type { UserId } from '#contracts';
import { type AddressGuard, EgressRefused, guardedAgent, MAX_IDLE_MS, MAX_INFORMATIONAL } from '#egress';
import { KeptConnections } from './kept-connections.js';
import type { RunningClock } from './running-clock.js';

/** The outcome of a POST. */
export type PostResult =
  | { kind: 'response'; status: number; retryAfter?: string; body: string }
  /** `timeout`: there was no response in time. `reason` is written for the user. */
  | { kind: 'failed'; timeout: boolean; reason: string };

/** The receiver of a request, and the account whose webhook it is. */
export interface Receiver {
  ownerId: UserId;
  origin: string;
  path: string;
}

/** Sends requests. An abstract class, because an interface cannot be an injection token. */
export abstract class Poster {
  /** Sends the request once. Never throws. */
  abstract post(to: Receiver, headers: Record<string, string>, body: Buffer): Promise<PostResult>;
  abstract close(): Promise<void>;
}

export interface HttpPosterOptions {
  guard: AddressGuard;
  clock: RunningClock;
  /** From the call to the end of the response. */
  timeoutMs: number;
  connectTimeoutMs: number;
}

/** How much of a response is stored. */
const KEPT_BYTES = 1024;
/** How much of a response is read at most. */
const READ_BYTES = 64 * 1024;
/** How much of a connection a response may use: its body in chunks, and headers. */
const RECEIVED_BYTES = 3 * READ_BYTES;
/** The receivers of which it is known when they last responded. */
const KNOWN_ORIGINS = 10_000;

/**
 * Sends requests to webhooks, HTTP/1.1 with connections kept alive, follows no redirects and never throws.
 *
 * A receiver may close a connection that has rested, at the moment at which the next request is sent on it. That is not a failure of the receiver: the request is
 * sent again on a new connection, once. The id of the message makes this safe if the receiver has handled it.
 *
 * It uses undici's dispatcher directly: `request` creates a stream and a promise per response, and only the status and a few bytes are needed.
 */
export class HttpPoster extends Poster {
  private readonly agent: Agent;
  /** For requests that are sent again: its connections are closed after one request. */
  private readonly fresh: Agent;
  private readonly connections = new KeptConnections();
  /** When a response of an origin has left a connection open, in ms. */
  private readonly rested = new LRUCache<string, number>({ max: KNOWN_ORIGINS });
  /** In the order in which they began. */
  private readonly underWay = new Set<Exchange>();
  /** Those that are sent again, few and in any order, with the time limits of their first requests. */
  private readonly sentAgain = new Set<Exchange>();
  private readonly stopTicking: () => void;

  constructor(private readonly options: HttpPosterOptions) {
    super();
    const { guard, clock, timeoutMs, connectTimeoutMs } = options;
    const limits = {
      connect: { timeout: connectTimeoutMs },
      maxResponseBytes: RECEIVED_BYTES,
      // the tick below enforces the limit; these only clean up
      headersTimeout: timeoutMs + 5000,
      bodyTimeout: timeoutMs + 5000,
      pipelining: 1,
    };
    [this.agent, this.fresh] = [guardedAgent(guard, limits), guardedAgent(guard, limits)];
    // one timer for all requests: a timer or an abort signal per request costs more than the signature
    this.stopTicking = clock.onTick(() => this.expire());
  }

  post({ ownerId, origin, path }: Receiver, headers: Record<string, string>, body: Buffer): Promise<PostResult> {
    return new Promise((resolve) => {
      const begin = performance.now();
      const deadline = this.options.clock.now() + this.options.timeoutMs;
      const isKept = this.connections.keeps(ownerId, origin, begin);
      // the connection of a response before this request may have rested until now
      const mayReuse = isKept && begin - (this.rested.get(origin) ?? -Infinity) < MAX_IDLE_MS;
      const request = { origin, path, method: 'POST', headers, body } as const;
      const send = (agent: Agent, exchanges: Set<Exchange>, reset: boolean, mayRepeat: boolean): void => {
        const exchange = new Exchange(deadline, (result, isLost) => {
          exchanges.delete(exchange);
          if (isLost && mayRepeat) return send(this.fresh, this.sentAgain, true, false);
          if (result.kind === 'response' && !reset) this.rested.set(origin, performance.now());
          resolve(result);
        });
        exchanges.add(exchange);
        try {
          // reset: closes the connection after the response
          agent.dispatch({ ...request, reset: reset || undefined }, exchange);
        } catch (error) {
          exchange.onResponseError(undefined, error as Error);
        }
      };
      send(this.agent, this.underWay, !isKept, mayReuse);
    });
  }

  /** Requests in progress never get an outcome: they did not fail, this process stopped. */
  async close(): Promise<void> {
    this.stopTicking();
    for (const exchange of [...this.underWay, ...this.sentAgain]) exchange.abandon();
    await Promise.all([this.agent.destroy(), this.fresh.destroy()]);
  }

  /** Returns whether requests are in progress. */
  private expire(): boolean {
    const now = this.options.clock.now();
    for (const exchange of this.sentAgain) if (exchange.deadline <= now) exchange.expire(this.options.timeoutMs);
    // they have one time limit: the first that is still in time ends it
    for (const exchange of this.underWay) {
      if (exchange.deadline > now) break;
      exchange.expire(this.options.timeoutMs);
    }
    return this.underWay.size + this.sentAgain.size > 0;
  }
}

class Exchange implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private status: number | undefined;
  private retryAfter: string | undefined;
  private body: Buffer = EMPTY;
  private received = 0;
  private informational = 0;
  private settled = false;

  constructor(
    readonly deadline: number,
    /** isLost: the connection ended before a response began. */
    private readonly settle: (result: PostResult, isLost: boolean) => void,
  ) {}

  expire(timeoutMs: number): void {
    // a status is a response, however long the rest takes
    this.end(this.status === undefined ? { kind: 'failed', timeout: true, reason: `no response within ${timeoutMs / 1000} s` } : undefined);
    this.controller?.abort(new Error('too late'));
  }

  abandon(): void {
    this.settled = true;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.settled) controller.abort(new Error('too late'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) {
      if (++this.informational <= MAX_INFORMATIONAL) return;
      this.end({ kind: 'failed', timeout: false, reason: 'too many informational responses' });
      controller.abort(new Error('too many informational responses'));
      return;
    }
    this.status = status;
    const retryAfter = headers['retry-after'];
    if (typeof retryAfter === 'string') this.retryAfter = retryAfter;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.body.length < KEPT_BYTES) this.body = Buffer.concat([this.body, chunk.subarray(0, KEPT_BYTES - this.body.length)]);
    this.received += chunk.length;
    if (this.received <= READ_BYTES) return;
    this.end();
    controller.abort(new Error('the response is longer than is read'));
  }

  onResponseEnd(): void {
    this.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    const isLost = this.status === undefined && this.informational === 0 && isLostConnection(error);
    this.end(this.status === undefined ? failure(error) : undefined, isLost);
  }

  private end(failed?: PostResult, isLost = false): void {
    if (this.settled) return;
    this.settled = true;
    this.settle(failed ?? { kind: 'response', status: this.status ?? 0, retryAfter: this.retryAfter, body: textOf(this.body) }, isLost);
  }
}

const EMPTY = Buffer.alloc(0);
const decoder = new TextDecoder();

/** The body as text. Invalid UTF-8 and NUL, which PostgreSQL's JSON does not accept, are replaced. */
const textOf = (body: Buffer): string => (body.length === 0 ? '' : decoder.decode(body).replaceAll('\0', '\uFFFD'));

const UNKNOWN_AUTHORITY = 'the certificate of the receiver is not from a known authority';

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was reset',
  EHOSTUNREACH: 'the host could not be reached',
  ENETUNREACH: 'the host could not be reached',
  UND_ERR_SOCKET: 'the connection was closed without a response',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no response in time',
  RESPONSE_TOO_LONG: 'the response is too long',
  UND_ERR_HEADERS_OVERFLOW: 'the response has too many headers',
  HTTPParserError: 'the response is not valid HTTP',
  // of undici's parser
  ERR_ASSERTION: 'the response is not valid HTTP',
  SyntaxError: 'the response is not valid HTTP',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the response is not valid HTTP',
  CERT_HAS_EXPIRED: 'the certificate of the receiver has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the receiver is for another host name',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
};

/** By the message of undici: its code would be that of a connection without a response. */
const UNEXPECTED: Record<string, string> = {
  'bad response': 'the receiver returned 100 Continue, which was not requested',
  'bad upgrade': 'the receiver returned 101 Switching Protocols, which was not requested',
};

/** Whether the connection has ended, and not because of a response that is not valid. */
const isLostConnection = (error: Error): boolean =>
  ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(String((error as { code?: unknown }).code)) && !(error.message in UNEXPECTED);

/** The failure in words for the webhook's owner. The message of the error may contain the address that a name resolved to. */
function failure(error: Error): PostResult {
  if (error instanceof EgressRefused) return { kind: 'failed', timeout: error.code === 'ETIMEDOUT', reason: error.message };
  const code = (error as { code?: unknown }).code;
  const name = typeof code === 'string' ? code : error.name;
  return {
    kind: 'failed',
    timeout: /TIMEOUT|ETIMEDOUT/.test(name),
    reason: UNEXPECTED[error.message] ?? SENTENCES[name] ?? otherReason(name),
  };
}

const otherReason = (name: string): string =>
  /^ERR_(SSL|TLS)/.test(name) ? `the TLS connection failed (${name})` : `the request failed (${name})`;
