import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { AddressGuard } from '#egress';
import { makeTestCertificate } from '#testing';
import { HttpPoster } from './http-poster.js';
import { RunningClock } from './running-clock.js';

const TIMEOUT_MS = 30_000;
const { key, cert } = makeTestCertificate(['hook.test']);

let server: Server;
let connections = 0;
let poster: HttpPoster;
const authorities = getCACertificates();

beforeAll(async () => {
  setDefaultCACertificates([...authorities, cert]);
  server = createServer({ key, cert }, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => response.end(`${request.headers.host} ${body.length}`));
  }).on('secureConnection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const guard = AddressGuard.fromConfig('127.0.0.1', { lookup: async () => [{ address: '127.0.0.1' }] });
  poster = new HttpPoster({ guard, clock: new RunningClock(), timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
});
afterAll(async () => {
  setDefaultCACertificates(authorities);
  await poster.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const origin = (host: string) => `https://${host}:${(server.address() as AddressInfo).port}`;
const post = (host = 'hook.test', bytes = 10) =>
  poster.post({ ownerId: 'u_1', origin: origin(host), path: '/' }, {}, Buffer.alloc(bytes, 'x'));

it('a POST over TLS reaches the host of the certificate', async () => {
  expect(await post()).toMatchObject({ status: 200, body: `${origin('hook.test').slice('https://'.length)} 10` });
  expect(await post('hook.test', 500_000)).toMatchObject({ status: 200, body: expect.stringMatching(/ 500000$/) });
});

it.each(['other.test', '127.0.0.1'])('a POST over TLS fails if the certificate is for another host than %s', async (host) => {
  const reason = 'the certificate of the receiver is for another host name';
  expect(await post(host)).toEqual({ kind: 'failed', timeout: false, reason });
});

it('a connection over TLS is used again', async () => {
  const before = connections;
  for (let n = 0; n < 10; n++) expect(await post()).toMatchObject({ status: 200 });
  expect(connections - before).toBeLessThanOrEqual(2);
});

it('a POST over TLS fails if the port is closed', async () => {
  const to = { ownerId: 'u_1' as const, origin: 'https://hook.test:1', path: '/' };
  expect(await poster.post(to, {}, Buffer.from('x'))).toEqual({ kind: 'failed', timeout: false, reason: 'the connection was refused' });
});

it('a POST over TLS fails, and its connection is closed, if the receiver does not negotiate', async () => {
  let closed: Promise<void> | undefined;
  const silent = createTcpServer((socket: Socket) => {
    closed = new Promise((resolve) => socket.on('error', () => {}).once('close', () => resolve()));
    socket.resume();
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const guard = AddressGuard.fromConfig('127.0.0.1', { lookup: async () => [{ address: '127.0.0.1' }] });
  const impatient = new HttpPoster({ guard, clock: new RunningClock(), timeoutMs: TIMEOUT_MS, connectTimeoutMs: 1000 });
  const to = { ownerId: 'u_1' as const, origin: `https://hook.test:${(silent.address() as AddressInfo).port}`, path: '/' };
  expect(await impatient.post(to, {}, Buffer.from('x'))).toEqual({ kind: 'failed', timeout: true, reason: 'no connection in time' });
  await closed;
  await impatient.close();
  await new Promise((resolve) => silent.close(resolve));
});
