import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connectionLimits, limitConnections, networkOf } from './connection-limits.js';

it.each([
  ['the configured number', 1000, 100_000, { total: 1000, perAddress: 500 }],
  ['three quarters of the file descriptors', 20_000, 1024, { total: 768, perAddress: 384 }],
  ['the configured number where the descriptors are unknown', 20_000, Infinity, { total: 20_000, perAddress: 10_000 }],
])('allows %s, and half as many of one address', (_, configured, descriptors, limits) => {
  expect(connectionLimits(configured, descriptors)).toEqual(limits);
});

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['', ''],
])('counts %j as a client of %j', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

describe('a server with a limit of connections', () => {
  let server: Server;
  let clients: Socket[];

  const listen = async (limits: { total: number; perAddress: number }) => {
    server = createServer((_, response) => void response.end('x'));
    clients = [];
    limitConnections(server, limits);
    await once(server.listen(0), 'listening');
  };
  /** Whether a client that connects from this address is served. */
  const isServed = async (localAddress: string): Promise<boolean> => {
    const host = localAddress.includes(':') ? '::1' : '127.0.0.1';
    const client = connect({ port: (server.address() as AddressInfo).port, host, localAddress }).on('error', () => {});
    clients.push(client);
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const served = once(client, 'data').then(() => true);
    return Promise.race([served, once(client, 'close').then(() => false)]);
  };
  afterEach(() => {
    for (const client of clients) client.destroy();
    server.close();
  });

  it('closes further ones of an address that has too many, and no others', async () => {
    await listen({ total: 9, perAddress: 2 });
    expect(await isServed('127.0.0.1')).toBe(true);
    expect(await isServed('127.0.0.1')).toBe(true);
    expect(await isServed('127.0.0.1')).toBe(false);
    expect(await isServed('127.0.0.2')).toBe(true);
    clients[0]!.destroy();
    while (!(await isServed('127.0.0.1')));
  });

  it('closes further ones of all addresses', async () => {
    await listen({ total: 2, perAddress: 9 });
    expect(await isServed('127.0.0.1')).toBe(true);
    expect(await isServed('127.0.0.2')).toBe(true);
    expect(await isServed('127.0.0.3')).toBe(false);
  });
});
