import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { Agent, request, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { endpointLabel, endpointUrl } from '#config';
import { TooManyRequests, Unavailable } from '#contracts';
import { createLog } from '#observability';
import { GuessDelay, ResponseDelay } from '#http-server';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import type { RuntimeConfig } from '../runtime.config.js';
import type { SourceLocks } from '../runs/source-locks.js';
import { type HttpReply, SandboxUnavailable } from '../sandbox/sandbox.js';
import { EndpointsServer } from './endpoints.server.js';
import type { Admission, EndpointResponse, EndpointsService, RequestEvent } from './endpoints.service.js';
import type { HttpEvent } from './http-event.js';

const KEY = 'abcdefghijklmnop';
const SUSPENDED = 'bcdefghijklmnopq';
const PAUSED = 'defghijklmnopqrs';
/** The endpoint of another account. */
const OF_ANOTHER = 'efghijklmnopqrst';
const FAILING = 'cdefghijklmnopqr';
const LIMIT = 1000;

let server: EndpointsServer | undefined;
/** Responses that were sent, or whose clients have disconnected. */
let closings: number;
beforeEach(() => void (closings = 0));
afterEach(async () => {
  await server?.beforeApplicationShutdown();
  server = undefined;
});

/** The server with a source that responds like this; `events` collects what the source received. */
async function start(
  response: EndpointResponse | Error = 'queued',
  requestsPerSecond: number | null = null,
  endpointsUrl = 'http://in.test',
  maxEndpointBodyBytes = LIMIT,
) {
  const events: HttpEvent[] = [];
  const turn = jest.fn(async () => {});
  const respondTo = async ({ event }: RequestEvent): Promise<EndpointResponse> => {
    events.push(JSON.parse(event) as HttpEvent);
    if (response instanceof Error) throw response;
    return response;
  };
  const endpoints = {
    find: async (key: string) => {
      if ([KEY, OF_ANOTHER, SUSPENDED, PAUSED].includes(key))
        return {
          active: [KEY, OF_ANOTHER].includes(key),
          suspended: key === SUSPENDED,
          owner_id: key === OF_ANOTHER ? 'u_2' : 'u_1',
        } as unknown as DeploymentRow;
      if (key === FAILING) throw new Unavailable('the stores do not respond', 'it could not be stored within 10 s');
      return key === 'manyotherendpoints' ? 'busy' : undefined;
    },
    turn,
    handled: () => {},
    admit: async () => (response === 'busy' ? 'busy' : isReply(response) ? 'run here' : 'store'),
    store: async (_: DeploymentRow, event: RequestEvent) => respondTo(event),
    runHere: async (_: DeploymentRow, event: RequestEvent, closed: Promise<void>) => {
      void closed.then(() => closings++);
      return respondTo(event);
    },
  } as unknown as EndpointsService;
  const config = {
    endpointsHost: '127.0.0.1',
    endpointsPort: 0,
    endpointsUrl,
    maxEndpointBodyBytes,
    endpointRequestsPerSecond: requestsPerSecond,
  } as RuntimeConfig;
  const locks = { close: async () => {} } as SourceLocks;
  server = new EndpointsServer(config, endpoints, locks, createLog('test', 'silent'));
  await server.onApplicationBootstrap();
  const port = server.port;
  const send = (
    { path = `/${KEY}`, ...options }: RequestOptions = {},
    body?: string | Buffer,
  ): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer; continued: boolean }> =>
    new Promise((resolve, reject) => {
      let continued = false;
      const outgoing = request({ host: '127.0.0.1', port, path, method: 'POST', agent: false, ...options }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks), continued }),
        );
      });
      outgoing.on('error', reject);
      if (outgoing.getHeader('expect') === undefined) return void outgoing.end(body);
      outgoing.on('continue', () => {
        continued = true;
        outgoing.end(body);
      });
      outgoing.flushHeaders();
    });
  return { port, send, events, turn };
}

async function eventually(check: () => unknown): Promise<void> {
  for (let left = 200; ; left--) {
    try {
      return void (await check());
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const isReply = (response: EndpointResponse | Error): response is HttpReply => typeof response === 'object' && 'status' in response;

const reply = (part: Partial<HttpReply>): HttpReply => ({ status: 200, headers: {}, body: Buffer.alloc(0), ...part });

describe('a request at an endpoint', () => {
  it.each<[string, EndpointResponse | Error, number]>([
    ['returns 200 when it is queued', 'queued', 200],
    ['returns 400 when the component does not respond', 'no response', 400],
    ['returns 504 when the component is stopped', 'stopped', 504],
    ['returns 503 when the source was switched off', 'not run', 503],
    ['returns 503 when the database is down', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), 503],
    ['returns 500 for an internal error', new Error('bug'), 500],
  ])('%s', async (_, response, status) => {
    const { send } = await start(response);
    const { headers, ...rest } = await send();
    expect(rest.status).toBe(status);
    expect(headers).toMatchObject({ 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' });
  });

  it('returns 503 with the reason when the message log is down', async () => {
    const { send } = await start(new Unavailable('Kafka does not take records', 'the message log does not accept records'));
    const { status, headers, body } = await send();
    expect([status, headers['retry-after'], JSON.parse(body.toString())]).toEqual([
      503,
      '5',
      { error: 'the request was not accepted, because the message log does not accept records; retry later' },
    ]);
  });

  it('returns 503 when no process for its component can be started', async () => {
    const { send } = await start(new SandboxUnavailable('no more processes'));
    const { status, headers, body } = await send();
    expect([status, headers['retry-after'], JSON.parse(body.toString())]).toEqual([
      503,
      '5',
      { error: 'the request was not accepted, because components cannot run at the moment; retry later' },
    ]);
  });

  it('returns 503 when its source cannot be looked up, without reading the body', async () => {
    const { send } = await start();
    const response = await send({ path: `/${FAILING}`, headers: { expect: '100-continue', 'content-length': 3 } }, 'abc');
    expect(response).toMatchObject({ status: 503, continued: false, headers: { 'retry-after': '5', connection: 'close' } });
  });

  it('returns 503 over the quota, until the quota is reset at 00:00 UTC', async () => {
    const { send } = await start('over quota');
    const { status, headers } = await send();
    const resetAt = Date.now() + Number(headers['retry-after']) * 1000;
    expect([status, Math.round(resetAt / 10_000) % 8640]).toEqual([503, 0]);
  });

  it('returns 404 if the source is paused, and says so', async () => {
    const { events, send } = await start();
    const { status, body } = await send({ path: `/${PAUSED}` });
    expect([status, body.toString(), events]).toEqual([404, '{"error":"the source of this endpoint is paused"}\n', []]);
  });

  it('returns 503 if the account is suspended, without reading the body', async () => {
    const { send, events } = await start();
    const { status, body } = await send({ path: `/${SUSPENDED}` });
    expect([status, JSON.parse(body.toString()), events]).toEqual([503, { error: 'the account of this endpoint is suspended' }, []]);
  });

  it('returns 404 if no source has the endpoint key', async () => {
    const { send } = await start();
    expect((await send({ path: '/somethingelse1234' })).status).toBe(404);
    expect((await send({ path: '/' })).status).toBe(404);
  });

  it('finds a source with its own host name only under that name', async () => {
    const { send } = await start(reply({ headers: { 'set-cookie': 'a=1' } }), null, 'https://*.in.test');
    const url = new URL(endpointUrl('https://*.in.test', KEY));
    expect(url.pathname).toBe(`/${KEY}`);
    expect(url.hostname).not.toContain(KEY);
    expect(await send({ headers: { host: `${url.hostname.toUpperCase()}:443` } })).toMatchObject({
      status: 200,
      headers: { 'set-cookie': ['a=1'] },
    });
    for (const host of ['in.test', '127.0.0.1', endpointUrl('https://*.in.test', `${KEY}x`).slice('https://'.length).split('/')[0]!])
      expect((await send({ headers: { host } })).status).toBe(404);
  });

  describe('whose target is an absolute URL', () => {
    it.each([
      ['http://in.test:3001', `/${KEY}/a/b?x=http://other/`],
      ['HTTPS://in.test', `/${KEY}?x=http://other/`],
      ['http://[::1]', `/${KEY}/`],
    ])('the target %s reaches the component like one with only the path %s', async (origin, path) => {
      const { send, events } = await start();
      await send({ path, headers: { host: 'in.test' } });
      expect(await send({ path: origin + path, headers: { host: 'in.test' } })).toMatchObject({ status: 200 });
      const [relative, absolute] = events;
      expect(absolute).toEqual({ ...relative, headers: { ...relative!.headers, host: new URL(origin).host } });
    });

    it.each(['http://in.test', 'http://in.test?x=1', `ftp://in.test/${KEY}`, `http:///${KEY}`, `http://u:p@in.test/${KEY}`, '*'])(
      'returns 404 for %s',
      async (path) => {
        const { send, events } = await start();
        expect(await send({ method: 'OPTIONS', path })).toMatchObject({ status: 404 });
        expect(events).toEqual([]);
      },
    );

    it('is for the host of the URL, whatever the header Host names', async () => {
      const { send } = await start('queued', null, 'https://*.in.test');
      const own = endpointUrl('https://*.in.test', KEY);
      const other = endpointUrl('https://*.in.test', `${KEY}x`);
      const hostOf = (url: string) => new URL(url).host;
      expect(await send({ path: own, headers: { host: hostOf(other) } })).toMatchObject({ status: 200 });
      expect(await send({ path: own.replace(hostOf(own), hostOf(other)), headers: { host: hostOf(own) } })).toMatchObject({ status: 404 });
    });
  });

  it('may have any method and any path below', async () => {
    const { send, events } = await start();
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PROPFIND']) await send({ method, path: `/${KEY}/a/b?x=1` });
    expect(events.map(({ method, path, query }) => [method, path, query])).toEqual(
      ['GET', 'DELETE', 'OPTIONS', 'PROPFIND'].map((method) => [method, '/a/b', { x: '1' }]),
    );
  });

  it('loses the headers that are for one hop', async () => {
    const { send, events } = await start();
    await send({ headers: { connection: 'close, x-mine', 'x-mine': '1', te: 'trailers', 'proxy-authorization': 'x', 'x-other': '2' } });
    expect(Object.keys(events[0]!.headers).sort()).toEqual(['content-length', 'host', 'x-other']);
  });
});

describe('a body', () => {
  it('over the limit returns 413, with and without a Content-Length', async () => {
    const { send, events } = await start();
    expect((await send({}, Buffer.alloc(LIMIT + 1))).status).toBe(413);
    expect((await send({ headers: { 'transfer-encoding': 'chunked' } }, Buffer.alloc(5_000_000))).status).toBe(413);
    expect((await send({}, 'x'.repeat(LIMIT))).status).toBe(200);
    expect(events).toHaveLength(1);
  });

  it('over the limit is read to its end, so that the client can finish sending and use the connection again', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    const size = 3_000_000;
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: ${size}\r\n\r\n`);
    const [refusal] = (await once(client, 'data')) as [Buffer];
    expect(refusal.toString()).toMatch(/^HTTP\/1.1 413/);
    client.write(Buffer.alloc(size));
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`);
    const [response] = (await once(client, 'data')) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1.1 200/);
    client.destroy();
  });

  it('is requested by 100 Continue, unless it is too large', async () => {
    const { send } = await start();
    const headers = { expect: '100-continue' };
    expect(await send({ headers: { ...headers, 'content-length': 3 } }, 'abc')).toMatchObject({ status: 200, continued: true });
    expect(await send({ headers: { ...headers, 'content-length': LIMIT + 1 } }, '')).toMatchObject({ status: 413, continued: false });
  });

  it('a body that turns out to be too large after 100 Continue is read to its end, so that the client can use the connection again', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    const [size, rest] = [LIMIT + 1, 3_000_000];
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`);
    expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 100/);
    client.write(`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`);
    expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 413/);
    client.write(`${rest.toString(16)}\r\n${'x'.repeat(rest)}\r\n0\r\n\r\n`);
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`);
    expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1.1 200/);
    client.destroy();
  });

  it('is not requested by 100 Continue in HTTP/1.0, which does not know it', async () => {
    const { port, events } = await start();
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`);
    expect(Buffer.concat(await client.toArray()).toString()).toMatch(/^HTTP\/1.1 200/);
    expect(events).toMatchObject([{ body: {} }]);
  });

  it('a request with two hosts is refused', async () => {
    const { port, events } = await start();
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\nHOST: y\r\ncontent-length: 2\r\n\r\n{}`);
    const [refusal] = (await once(client, 'data')) as [Buffer];
    expect(refusal.toString()).toMatch(/^HTTP\/1.1 400[^]*Host/);
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\nx-host: y\r\ncontent-length: 2\r\n\r\n{}`);
    const [response] = (await once(client, 'data')) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1.1 200/);
    expect(events).toHaveLength(1);
    client.destroy();
  });

  it('a body for an unknown endpoint is not waited for', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    client.write(`POST /anotherendpoint99 HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nx`);
    const [response] = (await once(client, 'data')) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1.1 404/);
    client.destroy();
  });

  it.each([
    ['bodies of 64 MiB are being received for the account', 1024 * 1024 - 1],
    ['bodies that are being received for the account occupy 64 MiB, even if less has come', 600 * 1024],
  ])('gets 429 while %s', async (_, sent) => {
    const { port, send } = await start('queued', null, 'http://in.test', 1024 * 1024);
    const head = `POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: ${1024 * 1024}\r\n\r\n`;
    const clients = Array.from({ length: 66 }, () => connect(port, '127.0.0.1'));
    const refusals = clients.map(async (client) => {
      client.write(head);
      client.write(Buffer.alloc(sent));
      return ((await once(client, 'data')) as [Buffer])[0].toString();
    });
    expect(await Promise.race(refusals)).toMatch(/^HTTP\/1.1 429[^]*retry-after: 5/i);
    for (const client of clients) client.destroy();
    let status = 0;
    while (status !== 200) ({ status } = await send({}, 'x'));
  });

  it('is not requested by 100 Continue before its request is admitted', async () => {
    const { send } = await start();
    const admit = jest.spyOn(server!['endpoints'], 'admit').mockRejectedValueOnce(new Unavailable('the catalog does not respond'));
    const request = () => send({ headers: { expect: '100-continue', 'content-length': 3 } }, 'abc');
    expect(await request()).toMatchObject({ status: 503, continued: false });
    admit.mockResolvedValueOnce('busy');
    expect(await request()).toMatchObject({ status: 429, continued: false });
    expect(await request()).toMatchObject({ status: 200, continued: true });
  });

  it.each([
    ['a packet', 'in large chunks', `80000\r\n${'x'.repeat(0x80000)}\r\n`, 64 * 1024],
    ['as few of its chunks as fit into a packet', 'byte by byte', '1\r\nx\r\n'.repeat(100_000), 11_000],
  ])('occupies %s while its request waits to be admitted and it arrives %s', async (_, __, chunks, most) => {
    const { port } = await start('queued', null, 'http://in.test', 1024 * 1024);
    const admitted = Promise.withResolvers<Admission>();
    const admit = jest.spyOn(server!['endpoints'], 'admit').mockReturnValue(admitted.promise);
    const arrived = once(server!['server'], 'request') as Promise<[IncomingMessage]>;
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    const [incoming] = await arrived;
    await eventually(() => expect(admit).toHaveBeenCalled());
    client.write(chunks);
    await eventually(() => expect(incoming.readableLength).toBeGreaterThan(most / 2));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(incoming.readableLength).toBeLessThan(most);
    expect(server!['receiving'].of('u_1')).toBe((16 + 64) * 1024);
    admitted.resolve('store');
    client.destroy();
  });

  describe('while the bodies or the responses of all accounts occupy an eighth of the memory', () => {
    const hasMemory = (bytes: number) => void jest.spyOn(process, 'constrainedMemory').mockReturnValue(bytes);
    afterEach(() => void jest.restoreAllMocks());
    const head = (key: string) => `POST /${key} HTTP/1.1\r\nhost: x\r\ncontent-length: ${1024 * 1024}\r\n\r\n`;

    it('the account with the most gets 429, and others do not', async () => {
      hasMemory(64 * 1024 * 1024);
      const { port, send, events } = await start('queued', null, 'http://in.test', 1024 * 1024);
      const clients = Array.from({ length: 9 }, () => connect(port, '127.0.0.1'));
      const refusals = clients.map(async (client) => {
        client.write(head(KEY));
        client.write(Buffer.alloc(1024 * 1024 - 1));
        return ((await once(client, 'data')) as [Buffer])[0].toString();
      });
      expect(await Promise.race(refusals)).toMatch(/^HTTP\/1.1 429[^]*retry-after: 5/i);
      expect(await send({ path: `/${OF_ANOTHER}` }, 'x')).toMatchObject({ status: 200 });
      expect(events).toHaveLength(1);
      for (const client of clients) client.destroy();
    });

    describe('a request with a body', () => {
      const body = Buffer.alloc(1024 * 1024, 'x');

      it('counts until it is stored, as the base64 that its body has become', async () => {
        hasMemory(64 * 1024 * 1024);
        const { send } = await start('queued', null, 'http://in.test', body.length);
        const stored = Promise.withResolvers<EndpointResponse>();
        const store = jest.spyOn(server!['endpoints'], 'store').mockReturnValue(stored.promise);
        const waiting = Array.from({ length: 5 }, () => send({}, body));
        await eventually(() => expect(store).toHaveBeenCalledTimes(5));
        expect(await send({}, body)).toMatchObject({ status: 429, headers: { 'retry-after': '5' } });
        stored.resolve('queued');
        expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(5).fill(200));
        expect((await send({}, body)).status).toBe(200);
      });

      it('does not count while its component handles it: those requests have another limit', async () => {
        hasMemory(64 * 1024 * 1024);
        const { send } = await start(reply({}), null, 'http://in.test', body.length);
        const replied = Promise.withResolvers<EndpointResponse>();
        const runHere = jest.spyOn(server!['endpoints'], 'runHere').mockReturnValue(replied.promise);
        const waiting: Promise<{ status: number }>[] = [];
        for (let n = 1; n <= 10; n++) {
          waiting.push(send({}, body));
          await eventually(() => expect(runHere).toHaveBeenCalledTimes(n));
        }
        replied.resolve(reply({ status: 201 }));
        expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(10).fill(201));
      });
    });

    it('an account with more responses that were not read than its share gets 429', async () => {
      hasMemory(200 * 1024 * 1024);
      // larger than the buffers of the kernel
      const { port, send } = await start(reply({ body: Buffer.alloc(10 * 1024 * 1024) }));
      const clients = Array.from({ length: 2 }, () => connect(port, '127.0.0.1').pause());
      for (const client of clients) client.write(`GET /${KEY} HTTP/1.1\r\nhost: x\r\n\r\n`);
      await eventually(async () => expect((await send({}, 'x')).status).toBe(429));
      expect((await send({ path: `/${OF_ANOTHER}` }, 'x')).status).toBe(200);
      for (const client of clients) client.destroy();
    });
  });

  it('a body that arrives byte by byte takes about its size of memory', async () => {
    const { port } = await start('queued', null, 'http://in.test', 1024 * 1024);
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    const pieces = 15_000;
    const before = heapBytes();
    client.write('1\r\nx\r\n'.repeat(pieces));
    await eventually(() => expect(client.bytesWritten).toBeGreaterThan(6 * pieces));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(heapBytes() - before).toBeLessThan(100 * pieces);
    client.destroy();
  });

  describe('a body with a Content-Encoding', () => {
    const json = Buffer.from(`{"a":"${'x'.repeat(LIMIT - 8)}"}`);
    const as = (encoding: string) => ({ headers: { 'content-type': 'application/json', 'content-encoding': encoding } });

    it.each<[string, Buffer]>([
      ['gzip', gzipSync(json)],
      ['X-Gzip', gzipSync(json)],
      ['deflate', deflateSync(json)],
      ['br', brotliCompressSync(json)],
      ['zstd', zstdCompressSync(json)],
    ])('%s is decoded', async (encoding, body) => {
      const { send, events } = await start();
      expect((await send(as(encoding), body)).status).toBe(200);
      expect(events).toMatchObject([
        { body: JSON.parse(json.toString()), bodyRaw: json.toString(), headers: { 'content-type': 'application/json' } },
      ]);
    });

    it.each<[string, string, Buffer, number, string]>([
      ['that is not its own', 'gzip', Buffer.from('{"a":1}'), 400, 'the body is not gzip, as its Content-Encoding says'],
      ['that ends early', 'br', brotliCompressSync(json).subarray(0, -3), 400, 'the body is not br, as its Content-Encoding says'],
      ['whose result is too large', 'gzip', gzipSync(Buffer.alloc(LIMIT + 1)), 413, `the body is larger than ${LIMIT} bytes`],
      [
        'whose result is a thousand times as large',
        'zstd',
        zstdCompressSync(Buffer.alloc(50_000_000)).subarray(0, LIMIT),
        413,
        `the body is larger than ${LIMIT} bytes`,
      ],
    ])('%s is refused', async (_, encoding, body, status, error) => {
      const { send, events } = await start();
      const response = await send(as(encoding), body);
      expect({ status: response.status, body: JSON.parse(response.body.toString()) as unknown }).toEqual({ status, body: { error } });
      expect(events).toEqual([]);
    });

    it.each(['identity', 'compress', 'gzip, br', ''])('%j, which is not decoded, arrives as it was sent', async (encoding) => {
      const { send, events } = await start();
      expect((await send(as(encoding), json)).status).toBe(200);
      expect(events).toMatchObject([{ bodyRaw: json.toString() }]);
    });

    it('arrives as an empty text if it has no bytes', async () => {
      const { send, events } = await start();
      expect((await send(as('gzip'), '')).status).toBe(200);
      expect(events).toMatchObject([{ body: '' }]);
    });
  });

  it('a body in too many chunks returns 413, and the rest is not read', async () => {
    const { port, events } = await start('queued', null, 'http://in.test', 1024 * 1024);
    const client = connect(port, '127.0.0.1').on('error', () => {});
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    client.write('1\r\nx\r\n'.repeat(20_000));
    const [refusal] = (await once(client, 'data')) as [Buffer];
    expect(refusal.toString()).toMatch(/^HTTP\/1.1 413[^]*connection: close[^]*chunks/i);
    await once(client, 'close');
    expect(events).toEqual([]);
  });

  it('a body that arrives slowly does not delay other requests, and one that never ends is not an event', async () => {
    const { port, send, events } = await start();
    const slow = connect(port, '127.0.0.1');
    slow.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab`);
    expect((await send({}, 'quick')).status).toBe(200);
    slow.write('cd');
    const [response] = (await once(slow, 'data')) as [Buffer];
    expect(response.toString()).toMatch(/^HTTP\/1.1 200/);
    slow.destroy();
    const broken = connect(port, '127.0.0.1');
    broken.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab`);
    broken.end();
    await once(broken.resume(), 'close');
    await send({}, 'last');
    expect(events.map(({ bodyRaw }) => bodyRaw)).toEqual(['quick', 'abcd', 'last']);
  });
});

it.each([
  ['disconnects', (client: Socket) => client.destroy()],
  ['closes its side of the connection', (client: Socket) => client.end()],
])('a request whose client %s before it is read makes no event, and nothing is logged', async (_, leave) => {
  const { port, events, turn } = await start();
  const lines = [jest.spyOn(server!['log'], 'warn'), jest.spyOn(server!['log'], 'error')];
  const { promise, resolve } = Promise.withResolvers<void>();
  turn.mockReturnValue(promise);
  const client = connect(port, '127.0.0.1');
  const arrived = once(server!['server'], 'request') as Promise<[IncomingMessage]>;
  client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`);
  const [incoming] = await arrived;
  await eventually(() => expect(turn).toHaveBeenCalled());
  leave(client);
  await eventually(() => expect(incoming.destroyed).toBe(true));
  resolve();
  await new Promise((done) => setTimeout(done, 50));
  expect([events, ...lines.map(({ mock }) => mock.calls)]).toEqual([[], [], []]);
});

describe('the response of a component', () => {
  it('is forwarded, cookies one by one and bytes as they are', async () => {
    const bytes = Buffer.from([0, 255, 128, 10]);
    const { send } = await start(
      reply({ status: 201, headers: { 'set-cookie': ['a=1', 'b=2'], 'content-type': 'image/png', 'x-own': 'ä' }, body: bytes }),
      null,
      'http://*.in.test',
    );
    const response = await send({ headers: { host: `${endpointLabel(KEY)}.in.test` } });
    expect(response).toMatchObject({
      status: 201,
      headers: { 'set-cookie': ['a=1', 'b=2'], 'content-type': 'image/png', 'content-length': '4' },
    });
    expect(response.body).toEqual(bytes);
  });

  it('cannot set headers of the connection or of the origin', async () => {
    const ours = {
      connection: 'x-secret, close',
      'x-secret': '1',
      'transfer-encoding': 'chunked',
      upgrade: 'h2c',
      'content-security-policy': 'none',
      'content-length': '99',
    };
    const { send } = await start(reply({ headers: { ...ours, 'x-own': '1' }, body: Buffer.from('ok') }));
    const { headers, body } = await send();
    expect(headers).toMatchObject({ 'content-security-policy': 'sandbox', 'content-length': '2', 'x-own': '1' });
    expect([headers['x-secret'], headers.upgrade, headers['transfer-encoding']]).toEqual([undefined, undefined, undefined]);
    expect(body.toString()).toBe('ok');
  });

  it('the response to HEAD is its headers alone', async () => {
    const { send } = await start(reply({ headers: { 'x-own': '1' }, body: Buffer.from('body') }));
    const { status, headers, body } = await send({ method: 'HEAD' });
    expect([status, headers['x-own'], headers['content-length'], body.length]).toEqual([200, '1', '4', 0]);
  });

  it('a response that its client does not read is dropped, and counts as closed only then', async () => {
    const { port } = await start(reply({ body: Buffer.alloc(20_000_000) }));
    server!['server'].timeout = 500;
    const client = connect(port, '127.0.0.1');
    client.pause();
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(closings).toBe(0);
    await eventually(() => expect(closings).toBe(1));
    client.destroy();
  });

  it('counts as closed when it has been read', async () => {
    const { send } = await start(reply({ body: Buffer.alloc(20_000_000) }));
    expect((await send()).body).toHaveLength(20_000_000);
    await eventually(() => expect(closings).toBe(1));
  });

  it.each([
    ['more than the kernel has taken', 12 * 1024 * 1024, 2],
    ['all of them taken by the kernel', 1024 * 1024, 32],
  ])('is refused with 429 while others of the account that nobody reads occupy 32 MiB: %s', async (_, bytes, count) => {
    const { port, send } = await start(reply({ body: Buffer.alloc(bytes) }));
    const clients = Array.from({ length: count }, () => connect(port, '127.0.0.1').pause());
    for (const client of clients) client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`);
    await eventually(async () => expect((await send()).status).toBe(429));
    for (const client of clients) client.destroy();
    await eventually(async () => expect((await send()).status).toBe(200));
  });

  it('keeps its connection until that has sent 64 KiB', async () => {
    const { send } = await start(reply({ body: Buffer.alloc(25_000) }));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const kept: unknown[] = [];
    for (let n = 0; n < 4; n++) kept.push((await send({ agent })).headers.connection);
    expect(kept).toEqual(['keep-alive', 'keep-alive', 'close', 'keep-alive']);
    agent.destroy();
  });

  it.each([
    [204, undefined],
    [205, '0'],
    [304, undefined],
  ])('has no body with the status %i', async (status, length) => {
    const { send } = await start(reply({ status, body: Buffer.from('body') }));
    const response = await send();
    expect(response).toMatchObject({ status, body: Buffer.alloc(0) });
    expect(response.headers['content-length']).toBe(length);
  });
});

describe('a guess of an endpoint', () => {
  afterEach(() => void jest.restoreAllMocks());

  it('waits for its response if there are many from its address; a request to an endpoint does not', async () => {
    const delayed = Promise.withResolvers<void>();
    const guesses = jest.spyOn(GuessDelay.prototype, 'pass').mockReturnValue(delayed.promise);
    const { send } = await start();
    const responses = ['/anotherendpoint99', '/malformed', '/manyotherendpoints'].map((path) => send({ path }));
    while (guesses.mock.calls.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await Promise.race([...responses, send()])).status).toBe(200);
    delayed.resolve();
    expect((await Promise.all(responses)).map(({ status, headers }) => [status, headers['retry-after']])).toEqual([
      [404, undefined],
      [404, undefined],
      [429, '5'],
    ]);
    expect(guesses.mock.calls).toEqual(Array(3).fill(['127.0.0.1']));
  });
});

describe('a server whose clients are asked to leave', () => {
  it('announces it in its responses, then accepts no connection, and finishes the requests in progress', async () => {
    const { send } = await start();
    const reply = Promise.withResolvers<EndpointResponse>();
    const store = jest.spyOn(server!['endpoints'], 'store').mockImplementationOnce(() => reply.promise);
    const response = send({ headers: { connection: 'keep-alive' } });
    await eventually(() => expect(store).toHaveBeenCalledTimes(1));
    const left = server!.letClientsLeave();
    expect((await send({ headers: { connection: 'keep-alive' } })).headers.connection).toBe('close');
    await left;
    await expect(send()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    reply.resolve('queued');
    expect((await response).status).toBe(200);
  });
});

describe('an idle connection', () => {
  it('stays open for longer than the 60 s of common proxies', async () => {
    const { send } = await start();
    const { headers } = await send({ headers: { connection: 'keep-alive' } });
    expect(headers['keep-alive']).toBe('timeout=75');
  });

  it('is closed when the service stops, which does not wait for its client', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: in.test\r\ncontent-length: 0\r\n\r\n`);
    await once(client, 'data');
    const closed = once(client, 'close');
    await server!.beforeApplicationShutdown();
    server = undefined;
    await closed;
  });

  it.each([
    ['nothing', ''],
    ['a part of a request', `POST /${KEY} HTTP/1.1\r\nhost: in.test\r\ncontent-length: 10\r\n\r\n1`],
  ])('is closed when the service stops, although its client has sent %s', async (_, part) => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1').on('error', () => {});
    await once(client, 'connect');
    client.write(part);
    await server!.beforeApplicationShutdown();
    server = undefined;
    client.destroy();
  });
});

describe('bytes that are not HTTP', () => {
  it('return 400 at the beginning of a connection', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    client.write('hello\r\n\r\n');
    const response = Buffer.concat(await client.toArray()).toString();
    expect(response).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\n[^]*connection: close[^]*\r\n\r\n\{"error":"the request is not valid HTTP: [^"]+"\}\n$/,
    );
  });

  it('behind a request do not replace its response', async () => {
    const { port, events } = await start();
    const { promise, resolve } = Promise.withResolvers<EndpointResponse>();
    const store = jest.spyOn(server!['endpoints'], 'store').mockImplementationOnce(async () => promise);
    const client = connect(port, '127.0.0.1');
    client.write(`POST /${KEY} HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\n{"a":"ä"}`);
    await eventually(() => expect(store).toHaveBeenCalled());
    client.write('more');
    await new Promise((done) => setTimeout(done, 50));
    resolve(reply({ status: 202, body: Buffer.from('ok') }));
    expect(Buffer.concat(await client.toArray()).toString()).toMatch(/^HTTP\/1.1 202 [^]*connection: close[^]*\r\n\r\nok$/i);
    expect(events).toEqual([]);
  });
});

describe('pipelined requests', () => {
  it('behind one that offers another protocol are dropped by Node, so its response closes the connection', async () => {
    const { port } = await start();
    const client = connect(port, '127.0.0.1');
    const get = (more: string) => `GET /${KEY} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
    client.write(get('connection: upgrade\r\nupgrade: h2c\r\n') + get(''));
    const responses = Buffer.concat(await client.toArray()).toString();
    expect(responses.match(/^HTTP\/1.1 200|^connection: close/gim)).toHaveLength(2);
  });

  it('are handled one after another, and do not delay those of other connections', async () => {
    const { port, send, events } = await start();
    const client = connect(port, '127.0.0.1');
    const replies = Promise.withResolvers<void>();
    const store = jest.spyOn(server!['endpoints'], 'store');
    store.mockImplementationOnce(async (_, { event }) => {
      events.push(JSON.parse(event) as HttpEvent);
      await replies.promise;
      return 'queued';
    });
    client.write(`POST /${KEY}/pipelined HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`.repeat(50));
    await eventually(() => expect(events).toHaveLength(1));
    expect((await send({ path: `/${KEY}/other` })).status).toBe(200);
    expect(events.map(({ path }) => path)).toEqual(['/pipelined', '/other']);
    replies.resolve();
    await eventually(() => expect(events).toHaveLength(51));
    client.destroy();
  });
});

describe('too many requests to an endpoint', () => {
  it('get 429; those to another endpoint do not', async () => {
    const { send } = await start('queued', 2);
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await send()).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect((await send()).headers['retry-after']).toBe('1');
    expect((await send({ path: '/anotherendpoint99' })).status).toBe(404);
  });

  it.each([
    ['by its account, if too many of its runs wait', 'busy', null, [['u_1']]],
    ['by its account, if too many requests wait', 'no turn', null, [['u_1']]],
    ['by its key, if it has a limit', 'queued', 1, [[KEY]]],
  ] as const)('get 429 at a limited pace, %s', async (_, response, requestsPerSecond, keys) => {
    const { send, turn } = await start(response === 'no turn' ? 'queued' : response, requestsPerSecond);
    if (response === 'no turn') turn.mockRejectedValue(new TooManyRequests('too many requests of this account are waiting'));
    if (requestsPerSecond !== null) expect((await send()).status).toBe(200);
    const delayed = Promise.withResolvers<void>();
    const pass = jest.spyOn(ResponseDelay.prototype, 'pass').mockReturnValue(delayed.promise);
    let status: number | undefined;
    const sent = send().then((received) => (status = received.status));
    await eventually(() => expect(pass.mock.calls).toEqual(keys));
    expect(status).toBeUndefined();
    delayed.resolve();
    expect(await sent).toBe(429);
    pass.mockRestore();
  });
});
