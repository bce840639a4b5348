import { describe, expect, it, jest } from '@jest/globals';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { CatalogConfig } from '../catalog.config.js';
import { Absent, CodeFetcher, rawUrl } from './code-fetcher.js';

describe('rawUrl', () => {
  it.each([
    ['https://github.com/ORG/REPO/blob/main/sources/a.js', 'https://raw.githubusercontent.com/ORG/REPO/main/sources/a.js'],
    ['https://github.com/ORG/REPO/tree/main/sources', 'https://github.com/ORG/REPO/tree/main/sources'],
    ['https://example.com/ORG/REPO/blob/main/a.js', 'https://example.com/ORG/REPO/blob/main/a.js'],
  ])('the raw URL of %s is derived from it', (url, raw) => expect(rawUrl(new URL(url)).href).toBe(raw));
});

/** The code at a URL of a server that handles each connection like this. */
async function fetchFrom(handle: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => handle(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const fetcher = new CodeFetcher(Object.assign(CatalogConfig.read({}), { allowPrivateHosts: '127.0.0.1' }));
  try {
    const { code } = await fetcher.fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a.mjs`);
    return code;
  } finally {
    await fetcher.onApplicationShutdown();
    server.close();
  }
}

it('refuses the code at a URL if it is not UTF-8', async () => {
  const response = Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n// \xe9', 'latin1');
  await expect(fetchFrom((socket) => socket.once('data', () => socket.end(response)))).rejects.toThrow('component_url is not UTF-8');
});

it('refuses the code at a URL if it has a NUL character', async () => {
  const response = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n// \0';
  await expect(fetchFrom((socket) => socket.once('data', () => socket.end(response)))).rejects.toThrow('component_url has a NUL character');
});

it.each([
  [2000, 'component_url is not UTF-8'],
  [2048, 'component_url redirects to a URL of more than 2048 characters'],
])('follows a redirect to a path of %i characters only if the URL is short enough', async (length, message) => {
  const responses = [
    `HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /${'a'.repeat(length - 1)}\r\n\r\n`,
    Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n// \xe9', 'latin1'),
  ];
  await expect(fetchFrom((socket) => socket.once('data', () => socket.end(responses.shift()!)))).rejects.toThrow(message);
});

it.each([
  ['does not respond', ''],
  ['does not send all of it', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1'],
])('refuses the code at a URL after 10 s if its server %s', async (_, response) => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 50));
  const code = fetchFrom((socket) => socket.once('data', () => socket.write(response)));
  await expect(code).rejects.toThrow('component_url could not be read within 10 s');
  jest.restoreAllMocks();
});

it.each([
  [403, true],
  [404, true],
  [429, false],
  [503, false],
])('refuses the code at a URL with the status %i of its server; it is absent: %s', async (status, isAbsent) => {
  const response = `HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`;
  const failure: unknown = await fetchFrom((socket) => socket.once('data', () => socket.end(response))).catch((error) => error);
  expect((failure as Error).message).toBe(`component_url returned status ${status}`);
  expect(failure instanceof Absent).toBe(isAbsent);
});

describe('a server that sends without end', () => {
  it.each([
    ['informational responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'too many informational responses'],
    ['extensions of chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1', `;x=${'x'.repeat(4000)}`, 'RESPONSE_TOO_LONG'],
  ])('%s is refused', async (_, begin, endless, why) => {
    const code = fetchFrom((socket) => {
      const send = (): void => {
        while (!socket.destroyed && socket.write(endless));
      };
      socket.once('data', () => (socket.write(begin), send()));
      socket.on('drain', send);
    });
    await expect(code).rejects.toThrow(why);
  });
});
