import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Why this process cannot listen on a port: EADDRINUSE, EACCES; null if it can. Checks the loopback address and all addresses, because on some
 * systems one does not exclude the other.
 * @param {number} port
 * @param {string[]} [hosts]
 */
export async function whyNotListen(port, hosts = ['127.0.0.1', '0.0.0.0', '::']) {
  for (const host of hosts) {
    const code = await tryToListen(port, host);
    // A machine may lack IPv6.
    if (code === 'EADDRINUSE' || code === 'EACCES') return code;
  }
  return null;
}

/**
 * Whether programs on this machine can listen on an address. The list of network interfaces is not sufficient: it lacks a bridge without
 * containers.
 * @param {string} host
 */
export const isOwnAddress = async (host) => (await tryToListen(0, host)) === null;

/** Ports that this process has returned: their callers may not be listening on them yet. */
const handedOut = new Set();

/**
 * A port on which no program listens. It is outside the range that the system uses for outgoing connections; otherwise any
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
