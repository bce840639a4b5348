import type { IncomingMessage } from 'node:http';

/** How long a client may continue to send a body that is not wanted, in ms. */
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
