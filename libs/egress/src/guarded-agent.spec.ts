import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { AddressGuard } from './address-guard.js';
import { guardedAgent } from './guarded-agent.js';

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
    const agent = guardedAgent(guard);
    const { body } = await request(`http://api.test:${port}/`, { dispatcher: agent });
    expect(await body.text()).toBe(`GET api.test:${port}`);
    await agent.close();
  });

  it('calls the guard once per connection and reuses the connection', async () => {
    let asked = 0;
    const guard = AddressGuard.fromConfig('127.0.0.0/8', { lookup: async () => (asked++, [{ address: '127.0.0.1' }]) });
    const agent = guardedAgent(guard, { connections: 1 });
    const before = connections;
    for (let i = 0; i < 5; i++) await (await request(`http://api.test:${port}/`, { dispatcher: agent })).body.dump();
    expect({ asked, connections: connections - before }).toEqual({ asked: 1, connections: 1 });
    await agent.close();
  });

  it('tries the next checked address when one cannot be reached', async () => {
    const guard = AddressGuard.fromConfig('127.0.0.0/8,::1', { lookup: async () => [{ address: '127.0.0.2' }, { address: '127.0.0.1' }] });
    const agent = guardedAgent(guard);
    const { statusCode, body } = await request(`http://api.test:${port}/`, { dispatcher: agent });
    await body.dump();
    expect(statusCode).toBe(200);
    await agent.close();
  });

  it('rejects with the refusal, before any connection', async () => {
    const agent = guardedAgent(AddressGuard.fromConfig(''));
    const before = connections;
    for (const host of ['127.0.0.1', 'localhost', '[::1]'])
      await expect(request(`http://${host}:${port}/`, { dispatcher: agent })).rejects.toMatchObject({
        name: 'EgressRefused',
        code: 'EACCES',
      });
    expect(connections).toBe(before);
    await agent.close();
  });
});
