import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { UnreachableError } from '@sluice/client';
import type { Session } from '../session/session.js';
import { trigger } from './trigger.js';

let server: Server;
let session: Session;
let received: string;
let receivedHeaders: IncomingHttpHeaders;
let respond: (response: ServerResponse) => void;

beforeAll(async () => {
  server = createServer((request, response) => {
    [received, receivedHeaders] = ['', request.headers];
    request.setEncoding('utf8').on('data', (text: string) => (received += text));
    request.on('end', () => respond(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  // another prop may look like an endpoint
  const configured_props = { vendor: { endpoint_url: 'http://127.0.0.1:1/' }, http: { endpoint_url } };
  const source = { id: 'dc_1', name_slug: 'orders', component_id: 'sc_1', configured_props };
  const configurable_props = [
    { name: 'vendor', type: 'object' },
    { name: 'http', type: '$.interface.http' },
  ];
  session = {
    ...{ format: 'table', env: {}, print: () => {} },
    sluice: {
      each: async function* () {
        yield source;
      },
      getComponent: async () => ({ data: { configurable_props } }),
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

it('does not sign if SLUICE_FIXTURE_SECRET is empty', async () => {
  respond = (response) => response.writeHead(401).end();
  const empty = { ...session, env: { SLUICE_FIXTURE_SECRET: '' } } as unknown as Session;
  await expect(trigger(empty, 'orders', { fixture: 'github.push' })).rejects.toThrow('the request was not signed');
  expect(receivedHeaders['x-hub-signature-256']).toBeUndefined();
});

it.each([
  ['/none', 'there is no file /none'],
  ['/dev/null', '/dev/null is empty'],
])('refuses to sign with the secret in %s', async (secretFile, message) => {
  await expect(trigger(session, 'orders', { fixture: 'json', secretFile })).rejects.toMatchObject({ code: 2, message });
});

it.each([302, 307])('does not follow a redirect with %i, which would send the secret to another server', async (status) => {
  let requests = 0;
  respond = (response) => (requests++ > 0 ? response.end() : response.writeHead(status, { location: '/elsewhere' }).end());
  await expect(trigger(session, 'orders', { data: '1' })).rejects.toMatchObject({
    ...{ message: `the endpoint returned ${status}, a redirect to /elsewhere, which trigger does not follow`, code: 1 },
  });
  expect(requests).toBe(1);
});
