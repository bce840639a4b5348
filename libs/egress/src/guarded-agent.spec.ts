import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { request } from 'undici';
import { AddressGuard } from './address-guard.js';
import { guardedAgent } from './guarded-agent.js';

const maxResponseBytes = 64 * 1024;

describe('guardedAgent', () => {
  let server: Server;
  let port: number;
  let connections = 0;

  beforeAll(async () => {
    server = createServer((req, res) => res.end(`${req.method} ${req.headers.host}`));
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => void server.close());

  it('dials the address that the guard returned and keeps the host name', async () => {
    const guard = AddressGuard.fromConfig('127.0.0.0/8', { lookup: async () => [{ address: '127.0.0.1' }] });
    const agent = guardedAgent(guard, { maxResponseBytes });
    const { body } = await request(`http://api.test:${port}/`, { dispatcher: agent });
    expect(await body.text()).toBe(`GET api.test:${port}`);
    await agent.close();
  });

  it('calls the guard once per connection and reuses the connection', async () => {
    let asked = 0;
    const guard = AddressGuard.fromConfig('127.0.0.0/8', { lookup: async () => (asked++, [{ address: '127.0.0.1' }]) });
    const agent = guardedAgent(guard, { maxResponseBytes, connections: 1 });
    const before = connections;
    for (let i = 0; i < 5; i++) await (await request(`http://api.test:${port}/`, { dispatcher: agent })).body.dump();
    expect({ asked, connections: connections - before }).toEqual({ asked: 1, connections: 1 });
    await agent.close();
  });

  it('tries the next checked address when one cannot be reached', async () => {
    const guard = AddressGuard.fromConfig('127.0.0.0/8,::1', { lookup: async () => [{ address: '127.0.0.2' }, { address: '127.0.0.1' }] });
    const agent = guardedAgent(guard, { maxResponseBytes });
    const { statusCode, body } = await request(`http://api.test:${port}/`, { dispatcher: agent });
    await body.dump();
    expect(statusCode).toBe(200);
    await agent.close();
  });

  it('rejects with the refusal, before any connection', async () => {
    const agent = guardedAgent(AddressGuard.fromConfig(''), { maxResponseBytes });
    const before = connections;
    for (const host of ['127.0.0.1', 'localhost', '[::1]'])
      await expect(request(`http://${host}:${port}/`, { dispatcher: agent })).rejects.toMatchObject({
        name: 'EgressRefused',
        code: 'EACCES',
      });
    expect(connections).toBe(before);
    await agent.close();
  });

  it('counts the bytes of each response of a connection by itself', async () => {
    const agent = guardedAgent(AddressGuard.fromConfig('127.0.0.1'), { maxResponseBytes: 1000, connections: 1 });
    const before = connections;
    for (let i = 0; i < 20; i++) await (await request(`http://127.0.0.1:${port}/`, { dispatcher: agent })).body.dump();
    expect(connections - before).toBe(1);
    await agent.close();
  });

  it.each([
    ['informational responses', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(200), ''],
    ['extensions of chunks', `;x=${'x'.repeat(4000)}`, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1'],
  ])('ends a connection on which %s come without end', async (_, endless, begin) => {
    let sent = 0;
    const hostile = createTcpServer((socket) => {
      const send = (): void => {
        while (!socket.destroyed && sent < 50_000_000 && socket.write(endless)) sent += endless.length;
      };
      socket.once('data', () => (socket.write(begin), send()));
      socket.on('drain', send).on('error', () => {});
    });
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
    const agent = guardedAgent(AddressGuard.fromConfig('127.0.0.1'), { maxResponseBytes });
    const { port } = hostile.address() as AddressInfo;
    const answer = request(`http://127.0.0.1:${port}/`, { dispatcher: agent }).then(({ body }) => body.text());
    await expect(answer).rejects.toMatchObject({ code: 'RESPONSE_TOO_LONG' });
    expect(sent).toBeLessThan(40_000_000);
    await agent.destroy();
    hostile.close();
  });
});
