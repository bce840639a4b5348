import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { AddressGuard } from '#egress';
import { HttpPoster, type PostResult } from './http-poster.js';
import { MAX_ORIGINS } from './kept-connections.js';
import { RunningClock } from './running-clock.js';

/** No machine is too slow for it. */
const TIMEOUT_MS = 30_000;
const clock = new RunningClock();
/** Of the poster whose time-outs are tested. */
const SHORT_MS = 1500;

let respond: RequestListener = (_, response) => response.end('ok');
let requests: { url?: string; method?: string; headers: Record<string, unknown>; body: string; socket: unknown }[] = [];
let server: Server;
let origin: string;
let poster: HttpPoster;
let impatient: HttpPoster;

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      requests.push({ url: request.url, method: request.method, headers: request.headers, body, socket: request.socket });
      respond(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  poster = new HttpPoster({ guard: AddressGuard.fromConfig('127.0.0.1'), clock, timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
  impatient = new HttpPoster({ guard: AddressGuard.fromConfig('127.0.0.1'), clock, timeoutMs: SHORT_MS, connectTimeoutMs: SHORT_MS });
});
afterEach(() => {
  requests = [];
});
afterAll(async () => {
  await Promise.all([poster.close(), impatient.close()]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const to = (receiver: string, path = '/') => ({ ownerId: 'u_1' as const, origin: receiver, path });

const post = (path = '/hook', body = '{"a":1}', by = poster) =>
  by.post(to(origin, path), { 'content-type': 'application/json', 'x-test': 'yes' }, Buffer.from(body));

/** A server without HTTP, with its address. */
async function tcpServer(onConnection: (socket: Socket) => void): Promise<{ receiver: string; close(): Promise<unknown> }> {
  const sockets: Socket[] = [];
  const tcp = createTcpServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
  const { port } = tcp.address() as AddressInfo;
  const close = () => {
    // those that rest would be closed seconds later
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => tcp.close(resolve));
  };
  return { receiver: `http://127.0.0.1:${port}`, close };
}

/** Posts to a server that responds with `begin` and then with the same text without end. */
async function postToEndless(endless: string, begin = ''): Promise<{ result: PostResult; sent: number }> {
  let sent = 0;
  const { receiver, close } = await tcpServer((socket) => {
    const send = (): void => {
      while (!socket.destroyed && sent < 50_000_000 && socket.write(endless)) sent += endless.length;
    };
    socket
      .once('data', () => {
        if (begin) socket.write(begin);
        send();
      })
      .on('drain', send);
  });
  const result = await poster.post(to(receiver), {}, Buffer.from('1'));
  await close();
  return { result, sent };
}

describe('a POST', () => {
  it('brings the body as it is, and the headers', async () => {
    respond = (_, response) => response.end('thanks');
    expect(await post('/hook?x=1', '{"ä":1}')).toEqual({ kind: 'response', status: 200, retryAfter: undefined, body: 'thanks' });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      url: '/hook?x=1',
      method: 'POST',
      body: '{"ä":1}',
      headers: { 'x-test': 'yes', 'content-length': '8' },
    });
  });

  it('sends a large body unchanged', async () => {
    respond = (_, response) => response.end();
    const body = JSON.stringify('x'.repeat(600_000));
    for (let n = 0; n < 2; n++) expect(await post('/large', body)).toMatchObject({ status: 200 });
    expect(requests.map((request) => request.body === body)).toEqual([true, true]);
  });

  it('keeps its connections', async () => {
    respond = (_, response) => response.end('ok');
    for (let n = 0; n < 10; n++) await post();
    // each rests for a turn of the event loop before it is used again: two take turns
    expect(new Set(requests.map(({ socket }) => socket)).size).toBeLessThanOrEqual(2);
  });

  it('is sent again on a new connection if the receiver has closed the one that rested', async () => {
    let connections = 0;
    const { receiver, close } = await tcpServer((socket) => {
      connections += 1;
      let got = 0;
      socket.on('data', () => (++got === 1 ? socket.write('HTTP/1.1 204 No Content\r\n\r\n') : socket.resetAndDestroy()));
    });
    const statuses: unknown[] = [];
    for (let n = 0; n < 5; n++) statuses.push(await poster.post(to(receiver), {}, Buffer.from('1')));
    expect(statuses).toEqual(Array(5).fill(expect.objectContaining({ kind: 'response', status: 204 })));
    expect(connections).toBeGreaterThan(2);
    await close();
  });

  it('is sent again on a new connection if the receiver ends the one that rested with 408', async () => {
    let connections = 0;
    const { receiver, close } = await tcpServer((socket) => {
      connections += 1;
      const late = 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n';
      socket.once('data', () => {
        socket.write('HTTP/1.1 204 No Content\r\n\r\n');
        socket.on('data', () => socket.end(late));
      });
    });
    for (let n = 0; n < 4; n++) {
      expect(await poster.post(to(receiver), {}, Buffer.from('1'))).toMatchObject({ kind: 'response', status: 204 });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(connections).toBe(4);
    await close();
  });

  it('is sent once to a receiver that closes each connection without a response', async () => {
    let connections = 0;
    const { receiver, close } = await tcpServer((socket) => {
      connections += 1;
      socket.on('data', () => socket.resetAndDestroy());
    });
    for (let n = 0; n < 2; n++) expect(await poster.post(to(receiver), {}, Buffer.from('1'))).toMatchObject({ kind: 'failed' });
    expect(connections).toBe(2);
    await close();
  });

  it('closes its connection beyond a number of origins, because an account can have thousands of webhooks', async () => {
    const sockets = new Set<unknown>();
    const many = createServer((_, response) => response.end('ok')).on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    // a host waits for minutes, and has all the addresses 127.…
    many.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => many.listen(0, '0.0.0.0', resolve));
    const guard = AddressGuard.fromConfig('127.0.0.0/8');
    const sender = new HttpPoster({ guard, clock, timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
    const { port } = many.address() as AddressInfo;
    const beyond = 20;
    for (let n = 0; n < MAX_ORIGINS + beyond; n++) {
      const receiver = `http://127.0.${Math.floor(n / 250)}.${(n % 250) + 1}:${port}`;
      expect(await sender.post(to(receiver), {}, Buffer.from('1'))).toMatchObject({ status: 200 });
    }
    while (sockets.size > MAX_ORIGINS) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(sockets.size).toBe(MAX_ORIGINS);
    await sender.close();
    await new Promise((resolve) => many.close(resolve));
  });

  it.each([204, 301, 307, 400, 410, 500, 503])('returns the status %i', async (status) => {
    respond = (_, response) => response.writeHead(status, { location: '/elsewhere' }).end();
    expect(await post()).toMatchObject({ kind: 'response', status });
    expect(requests.map(({ url }) => url)).toEqual(['/hook']);
  });

  it('passes on the Retry-After header of the response', async () => {
    respond = (_, response) => response.writeHead(429, { 'retry-after': '7' }).end();
    expect(await post()).toMatchObject({ status: 429, retryAfter: '7' });
  });

  it('waits for the final response after informational ones', async () => {
    respond = (_, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' });
      response.writeHead(202).end('later');
    };
    expect(await post()).toMatchObject({ status: 202, body: 'later' });
  });

  it('accepts 100 Continue, which it has not requested, before each response of a connection', async () => {
    const begin = 'HTTP/1.1 100 Continue\r\n\r\n';
    const { receiver, close } = await tcpServer((socket) =>
      // a body that looks like it is not changed
      socket.on('data', () => socket.write(`${begin}HTTP/1.1 200 OK\r\ncontent-length: ${begin.length}\r\n\r\n${begin}`)),
    );
    for (let n = 0; n < 3; n++)
      expect(await poster.post(to(receiver), {}, Buffer.from('1'))).toMatchObject({ kind: 'response', status: 200, body: begin });
    await close();
  });

  it('keeps the first KB of the response', async () => {
    respond = (_, response) => response.end('x'.repeat(5000));
    expect(await post()).toMatchObject({ status: 200, body: 'x'.repeat(1024) });
  });

  it('stops reading an endless response', async () => {
    let written = 0;
    respond = (_, response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384))) written += 16_384;
        response.once('drain', write);
      };
      write();
    };
    expect(await post()).toMatchObject({ status: 200, body: 'x'.repeat(1024) });
    expect(written).toBeLessThan(10_000_000);
  });

  it('has the status of a response whose chunks have extensions without end', async () => {
    const { result } = await postToEndless(
      `;x=${'x'.repeat(4000)}`,
      'HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n1',
    );
    expect(result).toMatchObject({ kind: 'response', status: 202 });
  });

  it('has text that the database can store, for any response', async () => {
    respond = (_, response) => response.end(Buffer.from([0x61, 0, 0xff, 0x62]));
    expect(await post()).toMatchObject({ status: 200, body: 'a\uFFFD\uFFFDb' });
  });

  it('is complete once the status has arrived, even if the body never does', async () => {
    respond = (_, response) => void response.writeHead(200, { 'content-length': '10' }).write('half');
    expect(await post(undefined, undefined, impatient)).toMatchObject({ status: 200, body: 'half' });
  });

  it('may take longer than its time limit while this process stands still', async () => {
    respond = (_, response) => {
      const now = performance.now.bind(performance);
      jest.spyOn(performance, 'now').mockImplementation(() => now() + 10 * SHORT_MS);
      setTimeout(() => response.end('in time'), SHORT_MS / 3);
    };
    expect(await post(undefined, undefined, impatient)).toMatchObject({ status: 200, body: 'in time' });
    jest.restoreAllMocks();
  });

  it('is complete if the connection breaks after the status', async () => {
    respond = (_, response) => {
      response.writeHead(500, { 'content-length': '10' }).write('half');
      setTimeout(() => response.destroy(), 20);
    };
    expect(await post()).toMatchObject({ kind: 'response', status: 500 });
  });
});

describe('a POST ends with an error', () => {
  it('a POST without a response in time fails', async () => {
    respond = () => {};
    expect(await post(undefined, undefined, impatient)).toEqual({ kind: 'failed', timeout: true, reason: 'no response within 1.5 s' });
  });

  it('a POST that is sent again on a new connection keeps its time limit', async () => {
    let requests = 0;
    const { receiver, close } = await tcpServer((socket) =>
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        // the second one is on the same connection; no other gets a response
        else if (requests === 2) setTimeout(() => socket.destroy(), 1000);
      }),
    );
    const hanging = await tcpServer((socket) => void socket.resume());
    const settled: string[] = [];
    const send = async (name: string, origin: string) => {
      const result = await impatient.post(to(origin), {}, Buffer.from('1'));
      settled.push(name);
      return result;
    };
    await send('before', receiver);
    // its connection has rested then
    await new Promise((resolve) => setTimeout(resolve, 50));
    const again = send('again', receiver);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const other = send('other', hanging.receiver);
    expect(await Promise.all([again, other])).toMatchObject([{ timeout: true }, { timeout: true }]);
    expect({ requests, settled }).toEqual({ requests: 3, settled: ['before', 'again', 'other'] });
    await Promise.all([close(), hanging.close()]);
  });

  it('a POST fails if the connection is closed without a response', async () => {
    respond = (_, response) => response.destroy();
    expect(await post()).toMatchObject({
      kind: 'failed',
      timeout: false,
      reason: expect.stringMatching(/^the connection was (closed|reset)/),
    });
  });

  it('a POST to a closed port fails without revealing the address', async () => {
    const { receiver, close } = await tcpServer(() => {});
    await close();
    const failed = await poster.post(to(receiver), {}, Buffer.from('1'));
    expect(failed).toEqual({ kind: 'failed', timeout: false, reason: 'the connection was refused' });
  });

  it('a POST fails if the response is not HTTP', async () => {
    const { receiver, close } = await tcpServer((socket) => void socket.end('220 smtp\r\n', () => socket.destroy()));
    const failed = await poster.post(to(receiver), {}, Buffer.from('1'));
    expect(failed).toMatchObject({ kind: 'failed', timeout: false, reason: expect.not.stringContaining('127.0.0.1') });
    await close();
  });

  it.each([
    ['too many informational responses', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'too many informational responses'],
    ['a header without end', 'HTTP/1.1 200 OK\r\nx: ' + 'x'.repeat(100_000), 'the response has too many headers'],
  ])('a POST fails if there are %s, without reading them all', async (_, endless, reason) => {
    const { result, sent } = await postToEndless(endless);
    expect(result).toEqual({ kind: 'failed', timeout: false, reason });
    expect(sent).toBeLessThan(40_000_000);
  });

  it.each([
    [
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      'the receiver returned 101 Switching Protocols, which was not requested',
    ],
    ['SSH-2.0-OpenSSH_9.6\r\n', 'the response is not valid HTTP'],
    ['HTTP/1.1 000 Nothing\r\n\r\n', 'the response is not valid HTTP'],
  ])('a POST fails with a reason in words: %j', async (response, reason) => {
    const { receiver, close } = await tcpServer((socket) => void socket.once('data', () => socket.write(response)));
    const result = await poster.post(to(receiver), {}, Buffer.from('1'));
    expect(result).toEqual({ kind: 'failed', timeout: false, reason });
    await close();
  });

  it('a POST to a name with a private address fails without revealing it', async () => {
    const guard = AddressGuard.fromConfig('', { lookup: async () => [{ address: '10.1.2.3' }] });
    const guarded = new HttpPoster({ guard, clock, timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
    const failed = await guarded.post(to('http://intranet.test'), {}, Buffer.from('1'));
    expect(failed).toMatchObject({ kind: 'failed', timeout: false, reason: expect.stringContaining('intranet.test') });
    expect(JSON.stringify(failed)).not.toContain('10.1.2.3');
    await guarded.close();
  });

  it('a POST fails if its URL is not one', async () => {
    expect(await poster.post(to('nonsense'), {}, Buffer.from('1'))).toEqual({
      kind: 'failed',
      timeout: false,
      reason: 'the URL is not valid',
    });
  });

  it('a POST fails if the value of a header is not valid in HTTP', async () => {
    expect(await poster.post(to(origin), { bad: 'a\nb' }, Buffer.from('1'))).toMatchObject({ kind: 'failed' });
  });
});

it('a request in progress never gets an outcome when the poster closes, because it did not fail', async () => {
  respond = () => {};
  const closing = new HttpPoster({
    guard: AddressGuard.fromConfig('127.0.0.1'),
    clock,
    timeoutMs: TIMEOUT_MS,
    connectTimeoutMs: TIMEOUT_MS,
  });
  let responded = false;
  void closing.post(to(origin), {}, Buffer.from('1')).then(() => (responded = true));
  while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await closing.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(responded).toBe(false);
});
