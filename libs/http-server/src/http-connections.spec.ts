import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  closeBehindUpgrade,
  closeOf,
  closeUnreadConnections,
  dropUnreadBody,
  endConnectionsOnClose,
  letClientsLeave,
  requestTarget,
} from './http-connections.js';
import { RawClients } from './raw-clients-for-tests.js';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const GET_LAST = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';

it('waits for clients no longer than it may, even if the clock is set back', async () => {
  const clock = jest.spyOn(Date, 'now').mockReturnValue(1_700_000_000_000);
  const server = { prependListener: () => {}, getConnections: (callback: (error: null, count: number) => void) => callback(null, 1) };
  await letClientsLeave(server as unknown as Server, 10);
  clock.mockRestore();
});

it.each([
  ['/a?x=http://y/', '/a?x=http://y/', 'own.test'],
  ['*', '*', 'own.test'],
  ['http://x', '/', 'x'],
  ['http://x?a', '/?a', 'x'],
  ['HTTPS://X:1/a//b?c', '/a//b?c', 'X:1'],
  ['http:///a', 'http:///a', 'own.test'],
  ['http://u:p@x/a', 'http://u:p@x/a', 'own.test'],
  ['ftp://x/a', 'ftp://x/a', 'own.test'],
])('the target %s is the path %s at the host %s', (url, path, host) => {
  expect(requestTarget({ url, headers: { host: 'own.test' } } as IncomingMessage)).toEqual({ path, host });
});

describe('a server', () => {
  let server: Server;
  let clients: RawClients;

  const listen = async (handle: RequestListener, protect: (server: Server) => void) => {
    server = createServer(handle);
    clients = new RawClients();
    protect(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  };
  const connected = () => clients.connect(server);
  afterEach(() => {
    clients.destroy();
    server.close();
  });

  describe('that responds before the body of a request has been read', () => {
    const BODY = 1_000_000;
    const post = (more: string) => `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY}\r\n${more}\r\n`;
    const listening = () =>
      listen(
        (request, response) => {
          dropUnreadBody(request, response);
          response.end(request.method);
        },
        (each) => {
          closeUnreadConnections(each);
          closeBehindUpgrade(each);
        },
      );

    it('handles a request that arrives together with the rest of the body', async () => {
      await listening();
      const client = await connected();
      client.write(post('') + 'x'.repeat(BODY / 2));
      expect(String((await once(client, 'data'))[0])).toMatch(/connection: keep-alive\r\n[^]*POST/i);
      client.write('x'.repeat(BODY / 2) + GET);
      expect(String((await once(client, 'data'))[0])).toMatch(/GET/);
    });

    it('announces that it closes the connection of a client that has offered another protocol, and reads the rest before', async () => {
      await listening();
      const client = await connected();
      const failed: Error[] = [];
      client.on('error', (error) => failed.push(error));
      client.write(post('connection: upgrade\r\nupgrade: h2c\r\n') + 'x'.repeat(BODY / 2));
      expect(String((await once(client, 'data'))[0])).toMatch(/connection: close\r\n[^]*POST/i);
      await new Promise((resolve) => client.end('x'.repeat(BODY / 2), () => resolve(undefined)));
      await once(client, 'close');
      expect(failed).toEqual([]);
    });
  });

  describe('whose clients offer another protocol', () => {
    const UPGRADE = 'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n';
    const GET_UPGRADE = GET.replace('\r\n\r\n', `\r\n${UPGRADE}\r\n`);
    const POST_UPGRADE = `POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n${UPGRADE}\r\n{}`;
    /** Sends each text after the response to the one before; returns the responses. */
    const responsesTo = async (...texts: string[]) => {
      await listen((request, response) => void request.resume().once('end', () => response.end('x')), closeBehindUpgrade);
      const client = await connected();
      const responses: string[] = [];
      for (const text of texts) {
        client.write(text);
        responses.push(String((await once(client, 'data'))[0]));
      }
      return { client, closing: responses.map((response) => /connection: close/i.test(response)) };
    };

    it('keeps a connection on which one request is sent after another', async () => {
      expect((await responsesTo(GET_UPGRADE, GET_UPGRADE, POST_UPGRADE, GET_UPGRADE, GET)).closing).toEqual(Array(5).fill(false));
    });

    it.each([
      ['a request', [GET_UPGRADE + GET]],
      ['a part of a request', [GET_UPGRADE + GET.slice(0, 5)]],
      ['the same request', [GET_UPGRADE + GET_UPGRADE]],
      ['a request behind a body', [POST_UPGRADE + GET]],
      ['a request behind a second one', [GET_UPGRADE, GET_UPGRADE + GET]],
    ])('closes a connection after the response if Node has dropped %s', async (_, texts) => {
      const { client, closing } = await responsesTo(...texts);
      expect(closing).toEqual([...Array(texts.length - 1).fill(false), true]);
      await once(client, 'close');
    });
  });

  describe('that is closed', () => {
    const INCOMPLETE_MS = 200;
    const respond: RequestListener = (request, response) => void request.resume().once('end', () => response.end('x'));
    const handling = (handle: RequestListener) => listen(handle, (each) => endConnectionsOnClose(each, INCOMPLETE_MS));
    const closed = () => new Promise((resolve) => server.close(resolve));

    it.each([
      ['sends nothing', '', ''],
      ['sends its headers slowly', 'GET / HTTP/1.1\r\nhost: x\r\n', 'x: y\r\n'],
      ['sends its body slowly', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n', 'x'],
      ['sends a second request slowly', `${GET}GET / HTTP/1.1\r\nhost: x\r\n`, 'x: y\r\n'],
      ['keeps its connection after a response', GET, ''],
    ])('does not wait for a client that %s', async (_, begin, more) => {
      await handling(respond);
      const client = await connected();
      client.write(begin);
      if (begin.startsWith(GET)) await once(client, 'data');
      const timer = setInterval(() => client.write(more), INCOMPLETE_MS / 10);
      await closed();
      clearInterval(timer);
    });

    it('finishes the requests in progress, and receives the rest of one that arrives meanwhile', async () => {
      const work = Promise.withResolvers<void>();
      await handling(
        (request, response) => void (request.method === 'GET' ? work.promise.then(() => response.end('late')) : respond(request, response)),
      );
      const [working, sending] = [await connected(), await connected()];
      working.write(GET);
      sending.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12');
      await new Promise((resolve) => setTimeout(resolve, INCOMPLETE_MS / 4));
      const isClosed = closed();
      sending.write('345');
      expect(String((await once(sending, 'data'))[0])).toMatch(/200 OK/);
      await new Promise((resolve) => setTimeout(resolve, 2 * INCOMPLETE_MS));
      work.resolve();
      expect(String((await once(working, 'data'))[0])).toMatch(/late/);
      await isClosed;
    });
  });

  describe('that closes connections whose responses are not read', () => {
    const AFTER_MS = 200;

    it('closes one whose client stops reading, and discards what it has not read', async () => {
      await listen(
        (_, response) => void response.end(Buffer.alloc(64 << 20)),
        (each) => closeUnreadConnections(each, AFTER_MS),
      );
      const client = (await connected()).pause();
      client.write(GET);
      const [, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
      await once(response, 'close');
      expect(response.writableFinished).toBe(false);
      const failed = once(client, 'error');
      client.resume();
      expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
    });

    describe('and whose responses the kernel has taken', () => {
      const BYTES = 1_500_000;
      const responding = (leaveMs: number) =>
        listen(
          (_, response) => void response.end(Buffer.alloc(BYTES)),
          (each) => {
            each.keepAliveTimeout = AFTER_MS;
            closeUnreadConnections(each, AFTER_MS, leaveMs);
          },
        );

      /** Sends a request whose response the client does not read yet. */
      async function request(text: string) {
        const client = (await connected()).pause();
        const end = new Promise((resolve) => {
          client.once('end', () => resolve('ended')).once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
        });
        const requested = once(server, 'request');
        client.write(text);
        const [{ socket }, response] = (await requested) as [IncomingMessage, ServerResponse];
        const closed = closeOf(socket);
        await closeOf(response);
        return { client, closed, end };
      }

      async function sizeRead(client: Socket, end: Promise<unknown>): Promise<number> {
        let size = 0;
        client.on('data', ({ length }: Buffer) => (size += length)).resume();
        await end;
        return size;
      }

      it.each([
        ['has requested the end of the connection', GET_LAST, undefined],
        ['keeps the connection', GET, undefined],
        ['ends the connection', GET, (client: Socket) => client.end()],
        ['sends something that is not HTTP', GET, (client: Socket) => client.write('x\r\n\r\n')],
      ])('discards them if the client %s and does not read them', async (_, text, then) => {
        await responding(AFTER_MS);
        const { client, closed, end } = await request(text);
        then?.(client);
        await closed;
        expect(await sizeRead(client, end)).toBeLessThan(BYTES);
        expect(await end).toBe('ECONNRESET');
      });

      it.each([
        ['has requested the end of the connection', GET_LAST],
        ['keeps the connection', GET],
      ])('sends all of them if the client %s and reads slowly', async (_, text) => {
        await responding(30_000);
        const { client, end } = await request(text);
        await new Promise((resolve) => setTimeout(resolve, 4 * AFTER_MS));
        expect(await sizeRead(client, end)).toBeGreaterThan(BYTES);
        expect(await end).toBe('ended');
      });

      it('sends all of them if the server closes meanwhile', async () => {
        await responding(30_000);
        const { client, closed, end } = await request(GET_LAST);
        server.close();
        await closed;
        expect(await sizeRead(client, end)).toBeGreaterThan(BYTES);
        expect(await end).toBe('ended');
      });
    });

    it('keeps one whose client reads slowly, but reads', async () => {
      // a busy machine may stop this process, and with it the client, for longer than the time of the other tests
      await listen(
        (_, response) => void response.end(Buffer.alloc(24 << 20)),
        (each) => closeUnreadConnections(each, 10 * AFTER_MS),
      );
      const client = await connected();
      let size = 0;
      const isRead = new Promise<void>((resolve, reject) => {
        client.once('close', () => reject(new Error(`the connection was closed after ${size} bytes`)));
        client.on('data', (chunk) => {
          size += chunk.length;
          if (size >= 24 << 20) return resolve();
          client.pause();
          setTimeout(() => client.resume(), 8);
        });
      });
      client.write(GET);
      await isRead;
      expect(client.destroyed).toBe(false);
    });

    it('keeps one whose response takes long', async () => {
      await listen(
        (_, response) => void setTimeout(() => response.end('late'), 3 * AFTER_MS),
        (each) => closeUnreadConnections(each, AFTER_MS),
      );
      const client = await connected();
      client.write(GET);
      expect(String((await once(client, 'data'))[0])).toContain('late');
    });

    it('keeps one whose client has waited for 100 Continue, and whose response takes long', async () => {
      await listen(
        () => {},
        (each) => closeUnreadConnections(each, AFTER_MS),
      );
      server.on('checkContinue', (_, response) => setTimeout(() => response.end('late'), 3 * AFTER_MS));
      const client = await connected();
      client.write('POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n');
      expect(String((await once(client, 'data'))[0])).toContain('late');
    });

    it('keeps a stream that writes something in between', async () => {
      await listen(
        (_, response) => {
          const timer = setInterval(() => response.write('x'), AFTER_MS / 2);
          response.once('close', () => clearInterval(timer));
        },
        (each) => closeUnreadConnections(each, AFTER_MS),
      );
      const client = await connected();
      client.write(GET);
      for (let n = 0; n < 6; n++) await once(client, 'data');
      expect(client.destroyed).toBe(false);
    });

    it('closes one that is idle', async () => {
      await listen(
        (_, response) => void response.end('x'),
        (each) => closeUnreadConnections(each, AFTER_MS),
      );
      server.keepAliveTimeout = AFTER_MS;
      const client = await connected();
      client.write(GET);
      await once(client, 'data');
      await once(client, 'close');
    });
  });
});
