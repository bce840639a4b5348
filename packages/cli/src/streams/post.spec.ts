import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from '@jest/globals';
import { post } from './post.js';

let server: Server;

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
}
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('post', () => {
  it('returns the status of the response, also of a redirect', async () => {
    const received: unknown[] = [];
    const url = await serve((request, response) => {
      void readAll(request).then((body) => {
        received.push([request.method, request.url, request.headers['webhook-id'], body]);
        response.writeHead(302, { location: '/elsewhere' }).end();
      });
    });
    expect(await post(url, '"ü"', { 'webhook-id': 'msg_1' })).toBe(302);
    expect(received).toEqual([['POST', '/hooks', 'msg_1', '"ü"']]);
  });

  it('throws if the server accepts the request and never responds', async () => {
    const url = await serve(() => {});
    await expect(post(url, '{}', {}, 50)).rejects.toThrow('no response within 0.05 s');
  });

  it('throws the reason if nobody listens', async () => {
    const url = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    await expect(post(url, '{}', {})).rejects.toThrow('ECONNREFUSED');
    await expect(post(url.replace('127.0.0.1', 'localhost'), '{}', {})).rejects.toThrow('ECONNREFUSED');
  });
});
