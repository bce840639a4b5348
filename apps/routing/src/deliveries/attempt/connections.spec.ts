import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { UserId } from '#contracts';
import { AddressGuard, guardedConnector } from '#egress';
import { LimitPerKey } from '#limits';
import { Connection, Connections, type Waiting } from './connections.js';
import { makeTestCertificate } from '#testing';
import { HttpResponse } from './http-response.js';

const ME = 'u_1' as UserId;

let server: Server;
/** Of the server, in the order in which they were opened. */
let sockets: Socket[];
let url: string;
let dials: number;
let connections: Connections;

beforeEach(async () => {
  [sockets, dials] = [[], 0];
  server = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  connections = new Connections(({ hostname, port }, callback) => {
    dials += 1;
    const socket = connect(Number(port), hostname);
    const fail = (error: Error): void => callback(error, null);
    socket.once('error', fail).once('connect', () => {
      socket.off('error', fail);
      callback(null, socket);
    });
  });
});
afterEach(async () => {
  connections.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** After this turn of the event loop, as a connection is used again. */
const rest = async (connection: Connection, forMs?: number): Promise<void> => {
  connections.rest(connection, forMs);
  await new Promise((resolve) => setImmediate(resolve));
};

const dial = () =>
  new Promise<Connection>((resolve, reject) =>
    connections.dial(connections.origin(ME, url), (error, connection) => (error ? reject(error) : resolve(connection))),
  );

/** Sends a request to which the server responds with this text; resolves to what the sender learns. */
async function exchange(connection: Connection, response: string, bytes = 10): Promise<'response' | Error | undefined> {
  return new Promise((resolve) => {
    const waiting: Waiting = { response: new HttpResponse(), onResponse: () => resolve('response'), onLost: resolve };
    connection.send([Buffer.alloc(bytes, 'x')], waiting);
    sockets.at(-1)!.once('data', () => sockets.at(-1)!.write(response));
  });
}

const seen = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
};

const OK = 'HTTP/1.1 204 No Content\r\n\r\n';

it('a connection that rests is used again, the one that rested for the shortest time first', async () => {
  const [first, second] = [await dial(), await dial()];
  const origin = connections.origin(ME, url);
  connections.rest(first);
  // what the receiver sends behind its response is seen first
  expect(connections.takeIdle(origin)).toBeUndefined();
  await rest(second);
  expect([connections.takeIdle(origin), connections.takeIdle(origin), connections.takeIdle(origin)]).toEqual([second, first, undefined]);
  expect(await exchange(second, OK)).toBe('response');
  expect(dials).toBe(2);
});

it.each([
  ['for four seconds if the receiver does not say how long it keeps it', undefined, 4000],
  ['two seconds less than the receiver says', 5000, 3000],
  ['for ten seconds at most', 600_000, 10_000],
])('a connection rests %s', async (_, says, expected) => {
  const connection = await dial();
  const before = performance.now();
  connections.rest(connection, says);
  expect(connection.idleUntil - expected).toBeGreaterThanOrEqual(before);
  expect(connection.idleUntil - expected).toBeLessThanOrEqual(performance.now());
});

it('a connection that the receiver keeps for a moment only does not rest', async () => {
  connections.rest(await dial(), 2000);
  await seen(() => sockets[0]?.closed === true);
});

it('a connection that has rested for too long is closed', async () => {
  const [late, swept] = [await dial(), await dial()];
  await rest(swept, 2100);
  await rest(late, 2100);
  await seen(() => late.idleUntil < performance.now());
  // one when the next request looks for it, the other by the timer
  expect(connections.takeIdle(connections.origin(ME, url))).toBeUndefined();
  await seen(() => sockets.length === 2 && sockets.every(({ closed }) => closed));
});

it('a connection that the receiver closes, or on which it sends something without a request, is not used again', async () => {
  for (const end of [
    (socket: Socket) => socket.end(),
    (socket: Socket) => socket.write(OK),
    (socket: Socket) => socket.resetAndDestroy(),
  ]) {
    const connection = await dial();
    await rest(connection);
    await seen(() => sockets.length === dials);
    end(sockets.at(-1)!);
    await seen(() => !connection.isOpen);
    expect(connections.takeIdle(connections.origin(ME, url))).toBeUndefined();
  }
});

it('a connection on which a line break follows the response is used again', async () => {
  const connection = await dial();
  await rest(connection);
  await seen(() => sockets.length === 1);
  sockets[0]!.write('\r\n');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(connections.takeIdle(connections.origin(ME, url))).toBe(connection);
});

it('a connection is not used again if the receiver has responded before it has read the request', async () => {
  const [used, connection] = [await dial(), await dial()];
  await rest(used);
  await seen(() => sockets.length === 2);
  // more than the buffers of a connection
  sockets[1]!.once('data', () => sockets[1]!.pause());
  expect(await exchange(connection, OK, 50_000_000)).toBe('response');
  expect(connection.isSent).toBe(false);
  await rest(connection);
  const origin = connections.origin(ME, url);
  expect([connections.takeIdle(origin), connections.takeIdle(origin)]).toEqual([used, undefined]);
  expect(connection.isOpen).toBe(false);
});

it('bytes that arrive before the request is written are not its response', async () => {
  const socket = new Socket();
  const connection = new Connection(socket, connections.origin(ME, url), { ms: 0, ofAccounts: new LimitPerKey(0) }, () => {});
  const lost = new Promise((resolve) => {
    connection.send([Buffer.from('x')], { response: new HttpResponse(), onResponse: () => resolve('response'), onLost: resolve });
    socket.emit('data', Buffer.from(OK));
  });
  expect(await lost).toBeUndefined();
  expect(connection.isOpen).toBe(false);
});

it('a response that cannot be read ends its connection', async () => {
  const connection = await dial();
  await seen(() => sockets.length === 1);
  expect(await exchange(connection, 'SSH-2.0\r\n')).toMatchObject({ name: 'BadResponse' });
  expect(connection.isOpen).toBe(false);
});

it('accounts do not share the connections to a receiver', async () => {
  await rest(await dial());
  expect(connections.takeIdle(connections.origin('u_2', url))).toBeUndefined();
  expect(connections.takeIdle(connections.origin(ME, url))).toBeDefined();
});

it('nothing stays in memory of a receiver to which no connection is open', async () => {
  const origin = connections.origin(ME, url);
  const connection = await dial();
  expect(connections.origin(ME, url)).toBe(origin);
  connection.close();
  await seen(() => connections.origin(ME, url) !== origin);
});

it('an origin with the port of its scheme has a host without it', () => {
  expect(connections.origin(ME, 'https://example.com').host).toBe('example.com');
  expect(connections.origin(ME, 'http://[::1]:8080')).toMatchObject({ host: '[::1]:8080', target: { hostname: '[::1]', port: '8080' } });
});

it('does not count connections that were lost before they were closed', async () => {
  for (let n = 0; n < 32; n++) {
    const lost = await dial();
    await seen(() => sockets.length === n + 1);
    lost.write([Buffer.alloc(50_000)]);
    sockets[n]!.resetAndDestroy();
    await seen(() => !lost.isOpen);
    lost.close();
  }
  const connection = await dial();
  await seen(() => sockets.length === 33);
  sockets[32]!.pause();
  connection.write([Buffer.alloc(50_000)]);
  connection.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(connections.origin(ME, url).uses).toBe(1);
});

it('keeps at most 32 connections of an account for receivers that have not read the request', async () => {
  const all = await Promise.all(Array.from({ length: 34 }, dial));
  await seen(() => sockets.length === all.length);
  for (const socket of sockets) socket.pause();
  for (const connection of all) connection.write([Buffer.alloc(50_000)]);
  for (const connection of all) connection.close();
  const { uses } = connections.origin(ME, url);
  await seen(() => connections.origin(ME, url).uses < uses);
  expect(connections.origin(ME, url).uses).toBe(32);
});

describe.each(['http', 'https'])('a receiver at %s that has responded before it reads the request', (scheme) => {
  const LINGER_MS = 50;
  const LONG_LINGER_MS = 600_000;
  const BYTES = 1_000_000;
  const { key, cert } = makeTestCertificate(['hook.test']);
  let receiver: Server;
  let closing: Connections;
  /** The receiver's end of the connection. */
  let socket: Socket;
  /** Resolves when the sender's end is closed. */
  let closed: Promise<void>;
  let received: number;

  /** Sends a request that is larger than what the receiver reads of it, and closes the connection at the response. */
  const respondEarly = async (lingerMs: number): Promise<void> => {
    received = 0;
    const take = (accepted: Socket): void => {
      socket = accepted.on('error', () => {});
      accepted.once('data', (bytes: Buffer) => {
        received += bytes.length;
        accepted.on('data', (more: Buffer) => (received += more.length)).pause();
        accepted.write(OK);
      });
    };
    receiver = scheme === 'http' ? createServer(take) : createTlsServer({ key, cert }, take);
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const guard = AddressGuard.fromConfig('127.0.0.1', { lookup: async () => [{ address: '127.0.0.1' }] });
    const connector = guardedConnector(guard, { ca: cert });
    closing = new Connections((target, callback) => {
      connector(target, (...found) => {
        closed = new Promise((resolve) => found[1]?.once('close', () => resolve()));
        callback(...found);
      });
    }, lingerMs);
    const origin = closing.origin(ME, `${scheme}://hook.test:${(receiver.address() as AddressInfo).port}`);
    await new Promise<void>((resolve, reject) =>
      closing.dial(origin, (error, connection) => {
        if (error) return reject(error);
        const onResponse = (): void => {
          connection.close();
          resolve();
        };
        connection.send([Buffer.alloc(BYTES)], { response: new HttpResponse(), onResponse, onLost: () => {} });
      }),
    );
  };
  afterEach(async () => {
    socket.destroy();
    await new Promise((resolve) => receiver.close(resolve));
    closing.close();
  });

  it('still gets the whole request if it reads it in time', async () => {
    await respondEarly(LONG_LINGER_MS);
    await new Promise((resolve) => setTimeout(resolve, 2 * LINGER_MS));
    socket.resume();
    await seen(() => received === BYTES);
  });

  it('gets a reset if it does not read in time', async () => {
    await respondEarly(LINGER_MS);
    await closed;
    const ended = new Promise((resolve) =>
      socket.once('end', () => resolve('ended')).once('error', ({ code }: NodeJS.ErrnoException) => resolve(code)),
    );
    socket.resume();
    expect(await ended).toBe('ECONNRESET');
    expect(received).toBeLessThan(BYTES);
  });
});
