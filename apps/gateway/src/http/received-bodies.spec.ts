import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { TooManyRequests } from '#contracts';
import { receiveBodies } from './received-bodies.js';

const KB = 1000;
let server: FastifyInstance;
let clients: Socket[];
let accepted: Socket[];

beforeEach(async () => {
  clients = [];
  accepted = [];
  server = fastify({ forceCloseConnections: true });
  server.addHook('onRequest', async (request) => Object.assign(request, { caller: { account: { id: request.headers['account'] } } }));
  // as `noticeEndOfWork` does: a response that is sent ends the work
  server.addHook('onSend', async ({ work }) => work?.resolve());
  receiveBodies(server, 2000 * KB, () => {}, 1000 * KB);
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
  server.setErrorHandler((error, _request, reply) => reply.code(error instanceof TooManyRequests ? 429 : 500).send());
  server.post('/', async (request) => request.received?.bytes.length);
  server.server.on('connection', (socket) => accepted.push(socket));
  await server.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  await server.close();
});

function send(account: string, length: number, sent = length): Socket {
  const client = connect((server.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  clients.push(client);
  const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\naccount: ${account}\r\ncontent-length: ${length}\r\n\r\n`;
  client.write(head + ' '.repeat(sent));
  return client;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A body without its last byte, when the server has received it. */
async function hold(account: string, length: number): Promise<Socket> {
  const client = send(account, length, length - 1);
  const isReceived = () => accepted.some(({ remotePort, bytesRead }) => remotePort === client.localPort && bytesRead > length);
  while (!isReceived()) await turn();
  await turn();
  return client;
}

/** The status of the response to a whole body. */
async function statusOf(account: string, length: number): Promise<number> {
  const client = send(account, length);
  const status = await statusFrom(client);
  client.destroy();
  return status;
}

async function statusFrom(client: Socket): Promise<number> {
  const [response] = (await once(client, 'data')) as [Buffer];
  return Number(/^HTTP\/1.1 (\d+)/.exec(String(response))?.[1]);
}

it('refuses a body while those of all accounts fill the memory, but only of an account that has more than its share', async () => {
  const large = await hold('large', 900 * KB);
  expect(await statusOf('large', 10 * KB)).toBe(200);
  const small = await hold('small', 200 * KB);
  expect(await statusOf('large', 10 * KB)).toBe(429);
  expect(await statusOf('small', 10 * KB)).toBe(200);
  expect(await statusOf('third', 300 * KB)).toBe(200);
  expect(await statusOf('third', 400 * KB)).toBe(429);
  small.write(' ');
  expect(await statusFrom(small)).toBe(200);
  small.destroy();
  while ((await statusOf('large', 10 * KB)) === 429) await turn();
  large.destroy();
});
