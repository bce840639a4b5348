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

/**
 * A port that nobody listens on, of the system's choice.
 * @returns {Promise<number>}
 */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
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
