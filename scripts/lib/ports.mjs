import { createServer } from 'node:net';

/**
 * Whether we could listen on a port. Asked of the loopback address and of all addresses: on some systems one does not exclude the other.
 * @param {number} port
 * @param {string[]} [hosts]
 */
export async function isPortFree(port, hosts = ['127.0.0.1', '0.0.0.0', '::']) {
  for (const host of hosts) if (!(await canListen(port, host))) return false;
  return true;
}

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
 * @returns {Promise<boolean>}
 */
function canListen(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    // A machine without IPv6 is no reason to call a port taken.
    server.once('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(!['EADDRINUSE', 'EACCES'].includes(error.code ?? '')));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
