import { connect } from 'node:net';

const HEADERS_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/**
 * Kept-alive HTTP connections that cost the benchmark little: the requests are prepared bytes, and only the status of a response is read.
 *
 * @param {string} url
 * @param {number} count
 */
export async function openConnections(url, count) {
  const { hostname, port } = new URL(url);
  const all = await Promise.all(Array.from({ length: count }, () => openConnection(hostname, Number(port))));
  const free = [...all];
  /** @type {((connection: (typeof all)[number]) => void)[]} */
  const waiting = [];
  return {
    /** Sends the request when a connection is free; resolves when it gets a 2xx response. @param {Buffer} request */
    send: async (request) => {
      const connection = free.pop() ?? (await new Promise((resolve) => waiting.push(resolve)));
      try {
        await connection.send(request);
      } finally {
        const next = waiting.shift();
        if (next) next(connection);
        else free.push(connection);
      }
    },
    close: () => all.forEach((connection) => connection.close()),
  };
}

/** @param {string} host @param {number} port */
async function openConnection(host, port) {
  let received = Buffer.alloc(0);
  /** @type {{ resolve: (value?: undefined) => void, reject: (error: Error) => void } | undefined} */
  let pending;
  /** @param {Buffer} chunk */
  const take = (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const end = received.indexOf(HEADERS_END);
    if (end < 0) return;
    const head = received.toString('latin1', 0, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? received.length - end - 4);
    if (/\r\ntransfer-encoding: chunked/i.test(head) && !received.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) return;
    if (received.length < end + 4 + length) return;
    const response = received.toString('utf8');
    received = received.subarray(end + 4 + length);
    if (/^HTTP\/1\.1 2/.test(head)) pending?.resolve();
    else pending?.reject(new Error(response.slice(0, 500)));
  };
  const open = async () => {
    const socket = connect({ host, port, noDelay: true });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('error', (error) => pending?.reject(error));
    socket.on('close', () => pending?.reject(new Error('the connection was closed')));
    socket.on('data', take);
    return socket;
  };
  let socket = await open();
  return {
    /** @param {Buffer} request @returns {Promise<void>} */
    send: async (request) => {
      // a server closes what was idle for some seconds
      if (socket.destroyed || socket.readableEnded) socket = await open();
      await new Promise((resolve, reject) => {
        pending = { resolve, reject };
        socket.write(request);
      });
      pending = undefined;
    },
    close: () => socket.destroy(),
  };
}

/**
 * The bytes of a POST.
 *
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {string} body
 */
export function postBytes(url, headers, body) {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ host, 'content-length': String(Buffer.byteLength(body)), ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.from(`POST ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}
