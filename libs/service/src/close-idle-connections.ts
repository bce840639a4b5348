import type { Server } from 'node:http';

const EVERY_MS = 50;

/**
 * While a server closes, ends each keep-alive connection as soon as it is idle. Node does so once, at the beginning: a connection whose request
 * ends later would keep the server open until its client leaves.
 */
export function closeIdleConnections(server: Server): void {
  const timer = setInterval(() => server.closeIdleConnections(), EVERY_MS);
  server.once('close', () => clearInterval(timer));
}
