import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readAll } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from '@jest/globals';
import { post } from './post.js';

const REQUEST = { headers: {}, body: '{}' };

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

const statusOf = (response: IncomingMessage): number => response.resume().statusCode!;

describe('post', () => {
  it('returns the status of the response, also of a redirect', async () => {
    const received: unknown[] = [];
    const url = await serve((request, response) => {
      void readAll(request).then((body) => {
        received.push([request.method, request.url, request.headers['webhook-id'], body]);
        response.writeHead(302, { location: '/elsewhere' }).end();
      });
    });
    expect(await post(url, { headers: { 'webhook-id': 'msg_1' }, body: '"ü"' }, 5000, statusOf)).toBe(302);
    expect(received).toEqual([['POST', '/hooks', 'msg_1', '"ü"']]);
  });

  it('throws if the server accepts the request and never responds', async () => {
    const url = await serve(() => {});
    await expect(post(url, REQUEST, 50, statusOf)).rejects.toThrow('no complete response within 0.05 s');
  });

  it('throws if the server never ends a response that is read, but not if it is not read', async () => {
    const url = await serve((_, response) => void response.write('more'));
    await expect(post(url, REQUEST, 50, readAll)).rejects.toThrow('no complete response within 0.05 s');
    expect(await post(url, REQUEST, 50, statusOf)).toBe(200);
  });

  it('throws the reason if nobody listens', async () => {
    const url = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    await expect(post(url, REQUEST, 5000, statusOf)).rejects.toThrow('ECONNREFUSED');
    await expect(post(url.replace('127.0.0.1', 'localhost'), REQUEST, 5000, statusOf)).rejects.toThrow('ECONNREFUSED');
  });
});
