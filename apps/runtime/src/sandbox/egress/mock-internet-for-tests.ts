import { createHash } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type AddressInfo, type Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { makeTestCertificate } from '#testing';

/** Servers on loopback that replace the internet in tests: HTTP, HTTPS, HTTP/2, one that sends first, and a forbidden one. */
export interface MockInternet {
  http: number;
  https: number;
  http2: number;
  /** Greets, then echoes */
  greeter: number;
  /** Not among the exceptions */
  forbidden: number;
  forbiddenConnections(): number;
  /** The certificate authority of the servers `https` and `http2`, in PEM */
  ca: string;
  /** For `SLUICE_ALLOW_PRIVATE_HOSTS` */
  allowed: string;
  lookup(host: string): Promise<{ address: string }[]>;
  close(): void;
}

const names: Record<string, string> = {
  'api.test': '127.0.0.1',
  'forbidden.test': '127.0.0.1',
  'store.test': '127.0.0.1',
  localhost: '127.0.0.1',
};
const megabyte = 1 << 20;

export async function startMockInternet(): Promise<MockInternet> {
  const { key, cert } = makeTestCertificate(['api.test']);
  let forbiddenConnections = 0;
  const servers = {
    http: createHttpServer({ keepAliveTimeout: 60_000 }, respond),
    https: createHttpsServer({ key, cert, keepAliveTimeout: 60_000 }, respond),
    http2: createSecureServer({ key, cert }, (_request, response) => response.end('over http2')),
    greeter: createServer((socket) => {
      socket.on('error', () => {});
      socket.write('220 hello\r\n');
      socket.on('data', (data) => socket.write(`got ${data.toString()}`));
    }),
    forbidden: createServer((socket) => {
      forbiddenConnections++;
      socket.destroy();
    }),
  };
  servers.http.on('upgrade', acceptWebSocket);
  const ports = await Promise.all(Object.values(servers).map((server) => listen(server)));
  const [http, https, http2, greeter, forbidden] = ports as [number, number, number, number, number];
  return {
    http,
    https,
    http2,
    greeter,
    forbidden,
    forbiddenConnections: () => forbiddenConnections,
    ca: cert,
    allowed: [http, https, http2, greeter].map((port) => `127.0.0.1:${port}`).join(','),
    lookup: async (host) => {
      if (/^both\.test\.?$/.test(host)) return [{ address: '127.0.0.1' }, { address: '10.0.0.1' }];
      const address = names[host];
      if (!address) throw new Error('ENOTFOUND');
      return [{ address }];
    },
    close: () => {
      for (const server of Object.values(servers)) {
        server.close();
        (server as Server).closeAllConnections?.();
      }
    },
  };
}

async function listen(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const feed = `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title>${[1, 2, 3].map((n) => `<item><guid>${n}</guid><title>T${n}</title></item>`).join('')}</channel></rss>`;

const routes: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  '/to-metadata': (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end(),
  '/to-loopback': (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/x' }).end(),
  '/slow': (_, response) => {
    response.write('x');
    const timer = setInterval(() => response.write('x'), 300);
    response.on('close', () => clearInterval(timer));
  },
  '/never': () => {},
  '/gzip-bomb': (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(300 * megabyte))),
  '/br-bomb': (_, response) => bomb(response, 'br', brotliCompressSync(zeros(), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
  '/zstd-bomb': (_, response) => bomb(response, 'zstd', zstdCompressSync(zeros())),
  '/deflate-bomb': (_, response) => bomb(response, 'deflate', deflateSync(zeros())),
  '/nested-bomb': (_, response) => bomb(response, 'gzip, gzip', gzipSync(gzipSync(zeros()))),
  '/again': (_, response) => response.writeHead(302, { location: '/again' }).end(),
  '/headers': (_, response) => endlessHeaders(response),
  '/200mb': (_, response) => stream(response, 200),
  '/40mb': (_, response) => stream(response, 40),
  '/rss': (_, response) => response.writeHead(200, { 'content-type': 'application/rss+xml' }).end(feed),
};

const respond: RequestListener = (request, response) => {
  const route = routes[request.url ?? ''];
  if (route) return route(request, response);
  let bytes = 0;
  request.on('data', (chunk: Buffer) => (bytes += chunk.length));
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ok: true, method: request.method, url: request.url, host: request.headers.host, bytes }));
  });
};

const zeros = (): Buffer => Buffer.alloc(300 * megabyte);

function bomb(response: ServerResponse, encoding: string, body: Buffer): void {
  response.writeHead(200, { 'content-encoding': encoding }).end(body);
}

function endlessHeaders({ socket }: ServerResponse): void {
  socket?.write('HTTP/1.1 200 OK\r\n');
  const timer = setInterval(() => socket?.write(`x: ${'y'.repeat(10_000)}\r\n`), 1);
  socket?.on('close', () => clearInterval(timer));
}

/** Only the handshake of RFC 6455. */
function acceptWebSocket(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.on('error', () => {});
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
}

function stream(response: ServerResponse, megabytes: number): void {
  const chunk = Buffer.alloc(megabyte);
  let sent = 0;
  const write = (): void => {
    while (sent++ < megabytes) if (!response.write(chunk)) return void response.once('drain', write);
    response.end();
  };
  write();
}
