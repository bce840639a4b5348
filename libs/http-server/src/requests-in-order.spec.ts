import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { closeOf, closeUnreadConnections } from './http-connections.js';
import { RawClients } from './raw-clients-for-tests.js';
import { handleInOrder } from './requests-in-order.js';

const request = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

describe('a server that handles requests in order', () => {
  let server: Server;
  let clients: RawClients;
  /** Of the requests that were handled, their paths and how to end them. */
  let handled: { path: string; end: () => void; response: ServerResponse }[];
  let respondsAtOnce: boolean;
  /** Parsed by Node, handled or not. */
  let received: number;

  const listen = async (limits?: { ofConnection: number; inAll: number }) => {
    [clients, handled, received, respondsAtOnce] = [new RawClients(), [], 0, false];
    server = createServer((incoming: IncomingMessage, response: ServerResponse) => {
      handled.push({ path: incoming.url!, end: () => void response.end(incoming.url), response });
      if (respondsAtOnce) response.end();
    });
    handleInOrder(server, limits);
    server.prependListener('request', () => void received++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  };
  const connected = () => clients.connect(server);
  /** Until nothing more happens on the sockets. */
  const settled = async () => {
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const until = async (check: () => boolean) => {
    while (!check()) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const paths = () => handled.map(({ path }) => path);

  afterEach(() => {
    clients.destroy();
    server.close();
  });

  it('handles a pipelined request when the one before it has its response, and those of other connections at once', async () => {
    await listen();
    const [one, other] = [await connected(), await connected()];
    let responses = '';
    one.on('data', (chunk) => (responses += String(chunk)));
    one.write(request('/a') + request('/b') + request('/c'));
    await until(() => received === 3);
    other.write(request('/other'));
    await until(() => received === 4);
    expect(paths()).toEqual(['/a', '/other']);
    handled[0]!.end();
    await until(() => handled.length === 3);
    expect(paths()).toEqual(['/a', '/other', '/b']);
    handled[2]!.end();
    await until(() => handled.length === 4);
    handled[3]!.end();
    await until(() => responses.endsWith('/c'));
    expect([...responses.matchAll(/\r\n\r\n(\/.)/g)].map(([, path]) => path)).toEqual(['/a', '/b', '/c']);
  });

  it('reads the body of a pipelined request when its turn comes', async () => {
    await listen();
    const bodies: string[] = [];
    server.on('request', () => {});
    const client = await connected();
    client.write(`${request('/a')}POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n${'x'.repeat(200_000)}${request('/c')}`);
    await until(() => handled.length === 1);
    handled[0]!.end();
    await until(() => handled.length === 2);
    for await (const chunk of handled[1]!.response.req) bodies.push(String(chunk));
    handled[1]!.end();
    await until(() => handled.length === 3);
    expect({ length: bodies.join('').length, paths: paths() }).toEqual({ length: 200_000, paths: ['/a', '/b', '/c'] });
  });

  it('does not read a connection on which many wait, and handles all of them in the end', async () => {
    await listen({ ofConnection: 10, inAll: 100_000 });
    const client = await connected();
    const all = 20_000;
    client.write(request('/').repeat(all));
    client.resume();
    await until(() => received > 10);
    await settled();
    const perPacket = Math.ceil(65_536 / request('/').length);
    expect(received).toBeLessThanOrEqual(10 + 2 * perPacket);
    // each response could let Node read another packet
    for (let n = 0; n < 5; n++) {
      handled[n]!.end();
      await until(() => handled.length === n + 2);
    }
    await settled();
    expect(received).toBeLessThanOrEqual(10 + 2 * perPacket);
    respondsAtOnce = true;
    handled[5]!.end();
    await until(() => handled.length === all);
    expect(received).toBe(all);
  });

  it('closes a connection on which more wait than may in all, and no other one', async () => {
    await listen({ ofConnection: 10, inAll: 20 });
    const [good, greedy] = [await connected(), await connected()];
    good.write(request('/good') + request('/next'));
    await until(() => received === 2);
    greedy.write(request('/').repeat(100));
    await once(greedy, 'close');
    // its requests do not count any more
    const later = await connected();
    later.write(request('/later') + request('/').repeat(15));
    await until(() => handled.some(({ path }) => path === '/later'));
    await settled();
    expect({ good: good.destroyed, later: later.destroyed }).toEqual({ good: false, later: false });
    handled[0]!.end();
    await until(() => paths().includes('/next'));
  });

  it('does not handle the requests that follow one whose response closes the connection', async () => {
    await listen();
    const client = await connected();
    client.write(request('/last') + request('/lost'));
    await until(() => received === 2);
    handled[0]!.response.setHeader('connection', 'close');
    handled[0]!.end();
    client.resume();
    await once(client, 'close');
    await settled();
    expect(paths()).toEqual(['/last']);
  });

  it('does not handle a request that arrives after the response that closes the connection, and ends that', async () => {
    await listen();
    closeUnreadConnections(server);
    const client = await connected();
    client.write(request('/last'));
    await until(() => received === 1);
    handled[0]!.response.setHeader('connection', 'close');
    handled[0]!.end();
    await once(client, 'data');
    client.write(request('/lost'));
    await until(() => received === 2);
    await closeOf(handled[0]!.response.req.socket);
    expect(paths()).toEqual(['/last']);
  });

  it('does not handle the requests of a client that has disconnected', async () => {
    await listen();
    const client = await connected();
    client.write(request('/a') + request('/b'));
    await until(() => received === 2);
    client.destroy();
    await once(handled[0]!.response, 'close');
    await settled();
    expect(paths()).toEqual(['/a']);
  });
});
