import type { Socket } from 'node:net';
import type { UserId } from '#contracts';
import { MAX_IDLE_MS, tcpSocket } from '#egress';
import { LimitPerKey } from '#limits';
import { type HttpResponse, withoutLineBreaks } from './http-response.js';

/** A receiver closes an idle connection this long before it says at the earliest; a request that is sent then would be lost. */
const MARGIN_MS = 2000;
/** For receivers that do not say how long they keep an idle connection. */
const USUAL_IDLE_MS = 4000;
const SWEEP_MS = 1000;
/** How long a receiver may take to read the rest of a request after its connection was closed: it can respond before it has read it. */
const LINGER_MS = 10_000;
/** Such connections of an account: the kernel has up to 4 MiB for each. */
const MAX_LINGERING = 32;
/** So few bytes may stay in the kernel. */
const FEW_BYTES = 16 * 1024;

/** Opens a socket to a server, for example over TLS. */
export type Connect = (
  target: { hostname: string; host: string; protocol: string; port: string },
  callback: (...result: [error: null, socket: Socket] | [error: Error, socket: null]) => void,
) => void;

/** Waits for the response on a connection. */
export interface Waiting {
  readonly response: HttpResponse;
  /** The response is complete. */
  onResponse(): void;
  /** The connection has ended, or what arrived is not a response. */
  onLost(error: Error | undefined): void;
}

/**
 * A server (scheme, host and port) as one account reaches it. Accounts share no connections: a receiver that sends more than its response could otherwise
 * give it to the request of another account.
 */
export class Origin {
  /** The `Host` header: without the port if it is the scheme's. */
  readonly host: string;
  /** The last one rested for the shortest time. */
  readonly idle: Connection[] = [];
  /** How many connections to it are open, or being opened. */
  uses = 0;
  private readonly url: URL;

  /** Throws a TypeError if the text is not a URL. */
  constructor(
    readonly account: UserId,
    url: string,
  ) {
    this.url = new URL(url);
    this.host = this.url.host;
  }

  get target(): Parameters<Connect>[0] {
    const { hostname, host, protocol, port } = this.url;
    return { hostname, host, protocol, port };
  }
}

/** How connections with bytes that their receivers may not have read are closed. */
interface Linger {
  ms: number;
  ofAccounts: LimitPerKey<UserId>;
}

let toWrite: [Connection, Buffer[]][] = [];

/** Each write can wake the receiver's process, which costs more than the write if it has nothing to do between two of them. */
function writeAll(): void {
  const all = toWrite;
  toWrite = [];
  for (const [connection, parts] of all) connection.write(parts);
}

/**
 * A connection to a receiver, with one request at a time. After an ordinary close, the kernel would keep what the receiver has not read for minutes, outside every
 * limit. So a connection that has sent more than a few bytes ends with a reset:
 *
 *   `close`                   ─► ended; reset after a few seconds, or at once if many others of the account are ending
 *   the receiver has ended it ─► reset at once
 */
export class Connection {
  /** When it is closed if it is not used, in ms. */
  idleUntil = 0;
  private waiting: Waiting | undefined;
  private isWritten = false;
  private error: Error | undefined;
  private isClosing = false;
  private readonly tcp: Socket;

  constructor(
    private readonly socket: Socket,
    readonly origin: Origin,
    private readonly linger: Linger,
    onClose: (connection: Connection) => void,
  ) {
    this.tcp = tcpSocket(socket);
    socket
      .on('data', (bytes: Buffer) => this.take(bytes))
      .on('error', (error: Error) => (this.error = error))
      .on('end', () => this.discard())
      .on('close', () => {
        onClose(this);
        this.settle()?.onLost(this.error);
      });
  }

  get isOpen(): boolean {
    return !this.isClosing && !this.socket.destroyed && this.socket.writable;
  }

  /** Whether all that was sent has left this process: a receiver can respond before it has read the request. */
  get isSent(): boolean {
    return this.socket.writableLength === 0;
  }

  /** Sends the parts of the request, with the other requests of this turn of the event loop. */
  send(request: Buffer[], waiting: Waiting): void {
    this.waiting = waiting;
    this.isWritten = false;
    if (toWrite.push([this, request]) === 1) setImmediate(writeAll);
  }

  write(parts: Buffer[]): void {
    this.isWritten = true;
    if (parts.length > 1) this.socket.cork();
    for (const part of parts) this.socket.write(part);
    if (parts.length > 1) this.socket.uncork();
  }

  /** After the outcome of its request. The receiver can read the rest of that for a while: it may have responded before. */
  close(): void {
    if (this.isClosing || this.socket.destroyed) return;
    this.isClosing = true;
    this.waiting = undefined;
    const release = this.socket.bytesWritten > FEW_BYTES && this.linger.ofAccounts.acquire(this.origin.account);
    if (!release) return this.discard();
    if (this.isSent) this.tcp.end();
    const timer = setTimeout(() => this.discard(), this.linger.ms).unref();
    this.socket.once('close', () => {
      clearTimeout(timer);
      release();
    });
  }

  /** When this process ends: the kernel still sends what it has. */
  leave(): void {
    this.socket.destroy();
  }

  private discard(): void {
    this.isClosing = true;
    const { socket, tcp } = this;
    if (socket.bytesWritten <= FEW_BYTES) socket.destroy();
    // libuv does not reset a socket while it ends it
    else if (this.isSent && tcp.writableEnded && !tcp.writableFinished) tcp.once('finish', () => tcp.resetAndDestroy());
    else if (!tcp.destroyed) tcp.resetAndDestroy();
  }

  private take(bytes: Buffer): void {
    // not the response to a request: if one is about to be written here, its response would be taken for that of the next one
    if (!this.waiting || !this.isWritten) {
      if (withoutLineBreaks(bytes).length > 0) this.discard();
      return;
    }
    const { response } = this.waiting;
    try {
      response.take(bytes);
    } catch (error) {
      const lost = this.settle();
      this.close();
      lost?.onLost(error as Error);
      return;
    }
    if (response.isComplete) this.settle()?.onResponse();
  }

  private settle(): Waiting | undefined {
    const { waiting } = this;
    this.waiting = undefined;
    return waiting;
  }
}

/** The connections to receivers, and those that rest until the next request. */
export class Connections {
  private readonly origins = new Map<string, Origin>();
  private readonly open = new Set<Connection>();
  /** In this turn of the event loop. */
  private resting: Connection[] = [];
  private sweeper: NodeJS.Timeout | undefined;
  private isClosed = false;
  private readonly linger: Linger;

  constructor(
    private readonly connect: Connect,
    lingerMs = LINGER_MS,
  ) {
    this.linger = { ms: lingerMs, ofAccounts: new LimitPerKey(MAX_LINGERING) };
  }

  /** Throws a TypeError if the text is not a URL. */
  origin(account: UserId, url: string): Origin {
    const key = `${account} ${url}`;
    let origin = this.origins.get(key);
    if (!origin) this.origins.set(key, (origin = new Origin(account, url)));
    return origin;
  }

  /** A connection that rests. */
  takeIdle({ idle }: Origin): Connection | undefined {
    for (let next = idle.pop(); next; next = idle.pop()) {
      if (next.isOpen && next.idleUntil > performance.now()) return next;
      next.close();
    }
    return undefined;
  }

  /** A new connection. `callback` is not called after `close`. */
  dial(origin: Origin, callback: (...result: [error: null, connection: Connection] | [error: Error, connection: null]) => void): void {
    origin.uses += 1;
    this.sweeper ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    this.connect(origin.target, (error, socket) => {
      if (this.isClosed) socket?.destroy();
      else if (error) {
        origin.uses -= 1;
        callback(error, null);
      } else {
        const connection = new Connection(socket, origin, this.linger, (closed) => this.forget(closed));
        this.open.add(connection);
        callback(null, connection);
      }
    });
  }

  /**
   * After a response. `forMs`: for how long the receiver keeps it, if it says so. It is used again after this turn of the event loop only. By then, a
   * receiver that ends the connection without having said so has been noticed, and bytes that follow the response. A TLS socket learns only then that the
   * request has left it.
   */
  rest(connection: Connection, forMs: number = USUAL_IDLE_MS + MARGIN_MS): void {
    connection.idleUntil = performance.now() + Math.min(forMs - MARGIN_MS, MAX_IDLE_MS);
    if (this.resting.push(connection) === 1) setImmediate(() => this.restAll());
  }

  private restAll(): void {
    const all = this.resting;
    this.resting = [];
    const now = performance.now();
    for (const connection of all) {
      if (connection.isOpen && connection.isSent && connection.idleUntil > now) connection.origin.idle.push(connection);
      else connection.close();
    }
  }

  close(): void {
    this.isClosed = true;
    clearInterval(this.sweeper);
    for (const connection of this.open) connection.leave();
  }

  private forget(connection: Connection): void {
    const { origin } = connection;
    this.open.delete(connection);
    origin.uses -= 1;
    const at = origin.idle.indexOf(connection);
    if (at !== -1) origin.idle.splice(at, 1);
  }

  private sweep(): void {
    const now = performance.now();
    for (const [key, { idle, uses }] of this.origins) {
      for (const connection of idle) if (connection.idleUntil <= now) connection.close();
      if (uses === 0) this.origins.delete(key);
    }
    if (this.origins.size > 0) return;
    clearInterval(this.sweeper);
    this.sweeper = undefined;
  }
}
