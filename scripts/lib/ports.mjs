import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Why we could not listen on a port: EADDRINUSE, EACCES; null when we could. Asked of the loopback address and of all addresses: on some
 * systems one does not exclude the other.
 * @param {number} port
 * @param {string[]} [hosts]
 */
export async function whyNotListen(port, hosts = ['127.0.0.1', '0.0.0.0', '::']) {
  for (const host of hosts) {
    const code = await tryToListen(port, host);
    // A machine without IPv6 is no obstacle.
    if (code === 'EADDRINUSE' || code === 'EACCES') return code;
  }
  return null;
}

/**
 * Whether programs on this machine can listen on an address. The list of network interfaces does not show it: a bridge without containers
 * is missing there.
 * @param {string} host
 */
export const isOwnAddress = async (host) => (await tryToListen(0, host)) === null;

/** Ports that this process has handed out: whoever got one may not listen on it yet. */
const handedOut = new Set();

/**
 * A port that nobody listens on. It lies outside the range from which the system takes ports for outgoing connections: otherwise any
 * connection could take it before the caller listens on it.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const end = firstOutgoingPort();
  for (;;) {
    const port = randomInt(LOWEST_PORT, end);
    if (handedOut.has(port) || (await whyNotListen(port)) !== null) continue;
    handedOut.add(port);
    return port;
  }
}

/** Above the ports of well-known services. */
const LOWEST_PORT = 12_000;

function firstOutgoingPort() {
  try {
    const first = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
    if (first >= LOWEST_PORT + 2000) return first;
  } catch {
    // Not Linux.
  }
  return 32_768;
}

/**
 * @param {number} port
 * @param {string} host
 * @returns {Promise<string | null>} the error's code
 */
function tryToListen(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(error.code ?? 'EUNKNOWN'));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(null)));
  });
}
