import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 50;

/**
 * While a server closes, ends each keep-alive connection as soon as it is idle. Node does so once, at the beginning: a connection whose request
 * ends later would keep the server open until its client leaves.
 */
export function closeIdleConnections(server: Server): void {
  const timer = setInterval(() => server.closeIdleConnections(), EVERY_MS);
  server.once('close', () => clearInterval(timer));
}

/**
 * Before a server closes: keeps answering for a while, and asks clients to close their connection with the next response. A connection that is
 * closed while it is idle may just be carrying a request, which is then lost. Resolves early when nobody is connected.
 */
export async function letClientsLeave(server: Server, delayMs: number): Promise<void> {
  // before the application's own listener, which may send the headers at once
  server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => void response.setHeader('connection', 'close'));
  for (const deadline = Date.now() + delayMs; Date.now() < deadline; await sleep(EVERY_MS)) {
    const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    if (connections === 0) return;
  }
}
