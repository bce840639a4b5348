import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { LimitPerKey } from '#limits';
import { counter } from '#observability';
import { HttpServerConfig } from './http-server.config.js';

/** The rest is for Kafka, the database, files and the processes of components: a service that has no descriptor left can do nothing. */
const SHARE_OF_DESCRIPTORS = 0.75;
/** Large, because a proxy or a load balancer is one address. */
const SHARE_OF_ADDRESS = 0.5;

const refused = counter('http_connections_refused_total', 'HTTP connections that were closed at once because there were too many.');

/**
 * Limits the connections that are open at a time: of all clients together, so that file descriptors are left, and of each address, so that others can
 * still connect. Further ones are closed at once.
 */
export function limitConnections(
  server: Server,
  limits = connectionLimits(HttpServerConfig.read().maxConnections, maxDescriptors()),
): void {
  server.maxConnections = limits.total;
  server.on('drop', () => refused.inc());
  const ofNetworks = new LimitPerKey<string>(limits.perAddress);
  server.on('connection', (socket) => {
    const release = ofNetworks.acquire(networkOf(socket.remoteAddress ?? ''));
    if (release) return void socket.once('close', release);
    refused.inc();
    socket.destroy();
  });
}

export function connectionLimits(configured: number, descriptors: number): { total: number; perAddress: number } {
  const total = Math.min(configured, Math.floor(SHARE_OF_DESCRIPTORS * descriptors));
  return { total, perAddress: Math.ceil(SHARE_OF_ADDRESS * total) };
}

/** The file descriptors that this process may have; Infinity if unknown. */
function maxDescriptors(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  } catch {
    // not Linux
    return Infinity;
  }
}

/** An IPv4 address, or the /64 of an IPv6 address: a client usually has all of its addresses. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = address.split('::');
  const [before, after] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)];
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
}
