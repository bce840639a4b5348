import type { UserId } from '#contracts';
import { type AddressGuard, EgressRefused, guardedConnector } from '#egress';
import { type Connection, Connections, type Origin, type Waiting } from './connections.js';
import { BadResponse, HttpResponse } from './http-response.js';
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

/**
 * Sends requests to webhooks, HTTP/1.1 with connections kept alive, follows no redirects and never throws.
 *
 * A receiver may close a connection that has rested, at the moment at which the next request is sent on it. That is not a failure of the receiver: the request is
 * sent again on a new connection, once. The id of the message makes this safe if the receiver has handled it.
 */
export class HttpPoster extends Poster {
  private readonly connections: Connections;
  private readonly kept = new KeptConnections();
  /** In the order in which they began. */
  private readonly underWay = new Set<Exchange>();
  private readonly stopTicking: () => void;

  constructor(private readonly options: HttpPosterOptions) {
    super();
    this.connections = new Connections(guardedConnector(options.guard, { timeout: options.connectTimeoutMs }));
    // one timer for all requests: a timer or an abort signal per request costs more than the signature
    this.stopTicking = options.clock.onTick(() => this.expire());
  }

  post({ ownerId, origin: url, path }: Receiver, headers: Record<string, string>, body: Buffer): Promise<PostResult> {
    return new Promise((resolve) => {
      const origin = this.originOf(ownerId, url);
      if (!origin) return resolve({ kind: 'failed', timeout: false, reason: 'the URL is not valid' });
      const isKept = this.kept.keeps(ownerId, url, performance.now());
      const request = requestText(origin.host, path, headers, isKept, body.length);
      if (request === undefined) return resolve({ kind: 'failed', timeout: false, reason: 'a header of the request is not valid in HTTP' });
      const deadline = this.options.clock.now() + this.options.timeoutMs;
      const exchange = new Exchange(this.connections, origin, { request: withBody(request, body), isKept, deadline }, (result) => {
        this.underWay.delete(exchange);
        resolve(result);
      });
      this.underWay.add(exchange);
      exchange.begin();
    });
  }

  /** Requests in progress never get an outcome: they did not fail, this process stopped. */
  async close(): Promise<void> {
    this.stopTicking();
    for (const exchange of this.underWay) exchange.abandon();
    this.connections.close();
  }

  private originOf(account: UserId, url: string): Origin | undefined {
    try {
      return this.connections.origin(account, url);
    } catch {
      return undefined;
    }
  }

  /** Returns whether requests are in progress. */
  private expire(): boolean {
    const now = this.options.clock.now();
    // they have one time limit: the first that is still in time ends it
    for (const exchange of this.underWay) {
      if (exchange.deadline > now) break;
      exchange.expire(this.options.timeoutMs);
    }
    return this.underWay.size > 0;
  }
}

interface Sent {
  /** Its parts. */
  request: Buffer[];
  /** Whether its connection is kept for further requests. */
  isKept: boolean;
  deadline: number;
}

/** A request and its response. */
class Exchange implements Waiting {
  response = new HttpResponse();
  private connection: Connection | undefined;
  private mayRepeat = true;
  private isSettled = false;

  constructor(
    private readonly connections: Connections,
    private readonly origin: Origin,
    private readonly sent: Sent,
    private readonly settle: (result: PostResult) => void,
  ) {}

  get deadline(): number {
    return this.sent.deadline;
  }

  begin(): void {
    const idle = this.sent.isKept ? this.connections.takeIdle(this.origin) : undefined;
    if (idle) this.sendOn(idle);
    else this.beginAnew();
  }

  expire(timeoutMs: number): void {
    // a status is a response, however long the rest takes
    if (this.response.status === undefined) this.end({ kind: 'failed', timeout: true, reason: `no response within ${timeoutMs / 1000} s` });
    else this.onResponse();
    this.connection?.close();
  }

  abandon(): void {
    this.isSettled = true;
  }

  onResponse(): void {
    const { connection, response } = this;
    // the receiver has ended a connection that rested, and did not know of the request yet (RFC 9110, 15.5.9)
    if (response.status === REQUEST_TIMEOUT && !response.keepsConnection && this.mayRepeat) {
      connection!.close();
      return this.beginAnew();
    }
    if (this.sent.isKept && response.keepsConnection && response.isComplete) this.connections.rest(connection!, response.keepAliveMs);
    else connection!.close();
    this.end({ kind: 'response', status: response.status!, retryAfter: response.retryAfter, body: response.body });
  }

  onLost(error: Error | undefined): void {
    if (this.isSettled) return;
    const { status, hasBegun } = this.response;
    if (status !== undefined) return this.onResponse();
    if (this.mayRepeat && !hasBegun && isLostConnection(error)) this.beginAnew();
    else this.end(error ? failure(error) : CLOSED);
  }

  private beginAnew(): void {
    this.mayRepeat = false;
    this.response = new HttpResponse();
    this.connections.dial(this.origin, (error, connection) => {
      if (this.isSettled) connection?.close();
      else if (error) this.end(failure(error));
      else this.sendOn(connection);
    });
  }

  private sendOn(connection: Connection): void {
    this.connection = connection;
    connection.send(this.sent.request, this);
  }

  private end(result: PostResult): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.settle(result);
  }
}

const REQUEST_TIMEOUT = 408;
/** Of a larger body, requests in progress would keep a second copy in memory. */
const COPIED_BYTES = 16 * 1024;

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const TARGET = /^[\x21-\x7e]+$/;

/** The request without its body; undefined if it would not be valid: a line break in a value would begin another header. */
function requestText(host: string, path: string, headers: Record<string, string>, isKept: boolean, bytes: number): string | undefined {
  if (!TARGET.test(path)) return undefined;
  let text = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${isKept ? 'keep-alive' : 'close'}\r\n`;
  for (const name in headers) {
    const value = headers[name]!;
    if (!TOKEN.test(name) || !VALUE.test(value)) return undefined;
    text += `${name}: ${value}\r\n`;
  }
  return `${text}content-length: ${bytes}\r\n\r\n`;
}

/** A small body is copied behind the head: one buffer is written faster than two. */
function withBody(head: string, body: Buffer): Buffer[] {
  if (body.length > COPIED_BYTES) return [Buffer.from(head, 'latin1'), body];
  const request = Buffer.allocUnsafe(head.length + body.length);
  request.write(head, 'latin1');
  body.copy(request, head.length);
  return [request];
}

const UNKNOWN_AUTHORITY = 'the certificate of the receiver is not from a known authority';

const CLOSED: PostResult = { kind: 'failed', timeout: false, reason: 'the connection was closed without a response' };

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was reset',
  EHOSTUNREACH: 'the host could not be reached',
  ENETUNREACH: 'the host could not be reached',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  CERT_HAS_EXPIRED: 'the certificate of the receiver has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the receiver is for another host name',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
};

/** Whether the receiver has ended the connection, rather than sent something that is not a response. `error`: undefined if it has closed it. */
const isLostConnection = (error: Error | undefined): boolean =>
  error === undefined || ['ECONNRESET', 'EPIPE'].includes(String((error as { code?: unknown }).code));

/** The failure in words for the webhook's owner. The message of the error may contain the address that a name resolved to. */
function failure(error: Error): PostResult {
  if (error instanceof BadResponse) return { kind: 'failed', timeout: false, reason: error.message };
  if (error instanceof EgressRefused) return { kind: 'failed', timeout: error.code === 'ETIMEDOUT', reason: error.message };
  const code = (error as { code?: unknown }).code;
  const name = typeof code === 'string' ? code : error.name;
  return { kind: 'failed', timeout: /TIMEOUT|ETIMEDOUT/.test(name), reason: SENTENCES[name] ?? otherReason(name) };
}

const otherReason = (name: string): string =>
  /^ERR_(SSL|TLS)/.test(name) ? `the TLS connection failed (${name})` : `the request failed (${name})`;
