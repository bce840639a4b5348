import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 50;

/** How long a client may take to send the headers of a request, and how often that is checked. Until then, anyone can occupy a connection. */
export const HEADERS_MS = 10_000;
export const CHECK_CONNECTIONS_MS = 5000;
/**
 * How long an idle connection stays open. Proxies keep theirs for 60 s by default and must be the first to close them: a request that is sent while the
 * server closes the connection is lost, and the client gets a 502.
 */
export const KEEP_ALIVE_MS = 75_000;

/** How long a client may take to send the rest of its request while the server closes. */
const INCOMPLETE_MS = 3000;

/**
 * Ends connections when the server closes, so that it waits for requests in progress only:
 *
 *   idle after a response ─► closed at once        no request, or a part of one, has arrived ─► closed after a few seconds
 *
 * Node closes connections that are idle at the beginning. It then waits for all others, and no longer limits the time to send a request.
 */
export function endConnectionsOnClose(server: Server, incompleteMs = INCOMPLETE_MS): void {
  const open = new Set<ServerSocket>();
  server.on('connection', (socket: ServerSocket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const close = server.close.bind(server);
  server.close = (callback) => {
    const begun = performance.now();
    const timer = setInterval(() => {
      server.closeIdleConnections();
      if (performance.now() < begun + incompleteMs) return;
      for (const socket of open) if (!socket._httpMessage?.req.complete) socket.destroy();
    }, EVERY_MS);
    server.once('close', () => clearInterval(timer));
    return close(callback);
  };
}

/**
 * Call it before a server closes. The server keeps responding for a while and asks clients to close their connection with the next response. Closing
 * an idle connection could lose a request that is being sent on it. Resolves early when nobody is connected.
 */
export async function letClientsLeave(server: Server, delayMs: number): Promise<void> {
  // before the application's own handler, which may send the headers at once
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => void response.setHeader('connection', 'close'));
  for (const deadline = performance.now() + delayMs; performance.now() < deadline; await sleep(EVERY_MS)) {
    const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    if (connections === 0) return;
  }
}

/**
 * Whether a request has a header several times. Of one that may be sent once, Node reads the first, and a proxy may have read another one: such a request is
 * refused (RFC 9112, 3.2, about `Host`).
 *
 * @param header in lower case
 */
export function isRepeated({ rawHeaders }: IncomingMessage, header: string): boolean {
  let times = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === header.length && name.toLowerCase() === header) times++;
  }
  return times > 1;
}

/**
 * RFC 9112, 3.2.2: a client may send an absolute URL instead of a path, as it would to a proxy. The host of the URL then takes precedence over the
 * header `Host`.
 *
 * @returns `path`: with its leading slash and the query
 */
export function requestTarget({ url = '/', headers }: IncomingMessage): { path: string; host: string | undefined } {
  const [, host, path] = /^https?:\/\/([^/?#@]+)([/?].*)?$/i.exec(url) ?? [];
  if (host === undefined) return { path: url, host: headers.host };
  return { path: path?.startsWith('/') ? path : `/${path ?? ''}`, host };
}

/**
 * A client may offer another protocol (`Upgrade: h2c`, as Java's HttpClient does with each request). Node's parser then stops at the end of the request, and drops
 * the bytes that have arrived together with that end. The client would take the next response for that of a dropped request. So the response closes the
 * connection, unless its client has sent this request and nothing more since the last response to such a request. Call it after `handleInOrder`, which would count it as a handler.
 */
export function closeBehindUpgrade(server: Server): void {
  /** The bytes that a connection had received when the last response to such a request was sent. */
  const handled = new WeakMap<Socket, number>();
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers.upgrade === undefined) return;
    const { socket } = request;
    const bytes = usualBytes(request);
    const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
    response.writeHead = (...args: unknown[]) => {
      if (socket.bytesRead !== (handled.get(socket) ?? 0) + bytes) response.shouldKeepAlive = false;
      handled.set(socket, socket.bytesRead);
      return writeHead(...args);
    };
  });
}

/** The size of a request if its head has no unusual spaces and its body is not chunked. */
function usualBytes({ method = '', url = '', rawHeaders, headers }: IncomingMessage): number {
  // of each name and value: two characters of ": " or the end of the line
  const ofHeaders = rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
  return `${method} ${url} HTTP/1.1\r\n\r\n`.length + ofHeaders + Number(headers['content-length'] ?? 0);
}

/** The requests whose clients wait for 100 Continue before they send the body. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/**
 * Leaves `Expect: 100-continue` to the handler of requests: it calls `continueBody` before it reads the body, and `dropUnreadBody` if it refuses the
 * request. Node would let each client send its body first. Call it after `handleInOrder`, which then orders these requests with the others.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    awaitingContinue.add(request);
    server.emit('request', request, response);
  });
}

/** Sends 100 Continue if the client waits for it. */
export function continueBody(request: IncomingMessage, response: ServerResponse): void {
  if (awaitingContinue.delete(request)) response.writeContinue();
}

/**
 * Call it when a response is about to be sent before its request's body has been read. Closing the connection would reset it while the client is still
 * sending, and the client would see the reset instead of the response. So the rest is read and dropped, for a limited time.
 *
 * The connection is kept for further requests, unless the client waits for 100 Continue: it may not send the body any more, and the next request would be read
 * as the body. See also `closeBehindUpgrade`.
 */
export function dropUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return;
  if (awaitingContinue.has(request) && !response.headersSent) response.setHeader('connection', 'close');
  lingerUntilClosed(request);
}

/** Resolves when a connection has been closed; for a response, also when that was sent. Node emits `close` once, which may be before the call. */
export const closeOf = (of: ServerResponse | Socket): Promise<void> =>
  of.closed ? Promise.resolve() : new Promise((resolve) => of.once('close', () => resolve()));

/** How long a client may continue to send after the response, in ms. */
const LINGER_MS = 5000;

/** Reads and drops the rest of the client's data. Closes the connection after a limited time if the client does not. */
export function lingerUntilClosed(from: IncomingMessage | Socket, ms = LINGER_MS): void {
  const timer = setTimeout(() => from.destroy(), ms).unref();
  from.once('close', () => clearTimeout(timer));
  from.resume();
}

/** How long a client may receive nothing of a response that is waiting for it, in ms. */
const UNREAD_MS = 30_000;
/** How long a client may take to read what the kernel has for it when the server ends the connection: 4 MiB at 35 KB/s. */
const LEAVE_MS = 120_000;
/** So few bytes may stay in the kernel. */
const FEW_BYTES = 16 * 1024;

/**
 * Closes the connection of a client that does not read its response, which would stay in memory. A live stream is closed, too, if its client receives
 * nothing of what is pending: further writes do not count. While nothing is pending, it stays open.
 *
 * After an ordinary close, the kernel would keep what a client has not read, up to 4 MiB, for minutes, outside every limit. So a connection that has sent more
 * than a few bytes is closed by a reset, which has no effect if the client has read everything:
 *
 *   after the last response, or idle ─► ended; the client reads the rest and closes it, or is too slow ─► reset
 *   the client has ended it, has broken the protocol, or does not read what waits in this process    ─► reset
 *   the server closes                                                                                ─► closed; the kernel sends the rest
 */
export function closeUnreadConnections(server: Server, afterMs = UNREAD_MS, leaveMs = LEAVE_MS): void {
  let isClosing = false;
  const close = server.close.bind(server);
  server.close = (callback) => {
    isClosing = true;
    return close(callback);
  };
  server.on('connection', (socket: ServerSocket) => {
    const { destroy } = socket;
    socket.destroy = (error) => {
      socket.destroy = destroy;
      return !isClosing && mayReset(socket) ? socket.resetAndDestroy() : socket.destroy(error);
    };
    // what Node calls after the last response
    socket.destroySoon = () => leave(socket, leaveMs);
  });
  // nothing was sent or received for that long, also when an idle connection has reached its keep-alive time-out
  server.setTimeout(afterMs, (socket: ServerSocket) => {
    const isServiceAtWork = Boolean(socket._httpMessage) && socket.writableLength === 0;
    if (isServiceAtWork) return;
    if (socket.writableLength > 0) socket.destroy();
    else leave(socket, leaveMs);
  });
}

function mayReset(socket: Socket): boolean {
  // libuv does not reset a socket while it ends it
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  return socket.bytesWritten > FEW_BYTES && !isEnding;
}

function leave(socket: Socket, leaveMs: number): void {
  if (socket.writableEnded) return;
  socket.end();
  lingerUntilClosed(socket, socket.bytesWritten > FEW_BYTES ? leaveMs : LINGER_MS);
}

/** The socket, with the response that Node is writing to it. */
type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };
