import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { UnreachableError } from '@sluice/client';
import type { Session } from '../session/session.js';
import { trigger } from './trigger.js';

let server: Server;
let session: Session;
let received: string;
let respond: (response: ServerResponse) => void;

beforeAll(async () => {
  server = createServer((request, response) => {
    received = '';
    request.setEncoding('utf8').on('data', (text: string) => (received += text));
    request.on('end', () => respond(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const source = { id: 'dc_1', name_slug: 'orders', configured_props: { http: { endpoint_url } } };
  session = {
    ...{ format: 'table', env: {}, print: () => {} },
    sluice: {
      each: async function* () {
        yield source;
      },
    },
  } as unknown as Session;
});
afterAll(() => void server.close());

it('sends the numbers of the data as they are written', async () => {
  respond = (response) => response.end();
  await trigger(session, 'orders', { data: '{"id": 12345678901234567890, "price": 17.00}' });
  expect(received).toBe('{"id":12345678901234567890,"price":17.00}');
});

it('reports an endpoint whose response breaks off as unreachable', async () => {
  respond = (response) => response.writeHead(200, { 'content-length': '10' }).write('{"a', () => response.destroy());
  await expect(trigger(session, 'orders', { data: '1' })).rejects.toBeInstanceOf(UnreachableError);
});

it('refuses a secret that cannot be read', async () => {
  await expect(trigger(session, 'orders', { fixture: 'json', secretFile: '/none' })).rejects.toMatchObject({
    ...{ code: 2, message: 'there is no file /none' },
  });
});
