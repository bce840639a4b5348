import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 50;

/**
 * While a server closes, closes each keep-alive connection as soon as it is idle. Node does so only once, at the beginning: a connection whose request
 * ends later would keep the server open until the client disconnects.
 */
export function closeIdleConnections(server: Server): void {
  const timer = setInterval(() => server.closeIdleConnections(), EVERY_MS);
  server.once('close', () => clearInterval(timer));
}

/**
 * Call it before a server closes. The server keeps responding for a while and asks clients to close their connection with the next response. Closing
 * an idle connection could lose a request that is being sent on it. Resolves early when nobody is connected.
 */
export async function letClientsLeave(server: Server, delayMs: number): Promise<void> {
  // before the application's own handler, which may send the headers at once
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => void response.setHeader('connection', 'close'));
  for (const deadline = Date.now() + delayMs; Date.now() < deadline; await sleep(EVERY_MS)) {
    const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    if (connections === 0) return;
  }
}

/** How long a client may continue to send an unwanted body, in ms. */
const LINGER_MS = 5000;

/**
 * Call it when a response is sent before its request's body has been read. Closing the connection would reset it while the client is still sending, and
 * the client would see the reset instead of the response. So the rest is read and dropped, for a limited time.
 */
export function dropUnreadBody(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.destroy(), LINGER_MS).unref();
  request.once('close', () => clearTimeout(timer));
  request.resume();
}
