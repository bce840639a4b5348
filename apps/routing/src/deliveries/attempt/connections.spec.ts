import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import type { UserId } from '#contracts';
import { Connection, Connections, type Waiting } from './connections.js';
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
    socket.once('connect', () => callback(null, socket)).once('error', (error) => callback(error, null));
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
  const connection = new Connection(socket, connections.origin(ME, url), () => {});
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
