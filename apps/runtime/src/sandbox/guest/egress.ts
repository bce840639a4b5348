import { isIPv6, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

// Node's own method to replace the connection of a socket, as happy eyeballs does after a failed attempt. TLSSocket overrides it and wraps the new
// one natively, so TLS stays end to end without a stream in between.
const reinitialize = Object.getOwnPropertySymbols(Socket.prototype).find((symbol) => symbol.description === 'kReinitializeHandle');

interface Handle {
  reading: boolean;
  readStop(): void;
  receive(bytes: Buffer): void;
}

type Internals = Socket & { [reinitializeHandle: symbol]: (handle: Handle) => void } & {
  _handle: Handle | null;
  _undestroy(): void;
  connecting: boolean;
  encrypted?: boolean;
};

interface Target {
  host?: string;
  port?: number | string;
  path?: string;
}

const normalizeArguments = (process.getBuiltinModule('net') as unknown as { _normalizeArgs(args: unknown[]): [Target, unknown] })
  ._normalizeArgs;

const proxyHeadBytes = 4096;

/**
 * Makes every TCP connection of this process go through the parent's proxy, by replacing the one function that all of them use: `http`, `https`,
 * `fetch`, `tls`, `http2` and everything built on them work unchanged. It is not a security boundary: code that bypasses it is still in a jail without a network.
 * @returns the replaced function
 * @throws if this Node no longer has these internals
 */
export function installEgress(proxyPath: string): typeof Socket.prototype.connect {
  if (!reinitialize || !Object.getOwnPropertySymbols(TLSSocket.prototype).includes(reinitialize))
    throw new Error(`Node ${process.version} has no kReinitializeHandle: the sandbox's network access does not work with it`);
  const connectDirectly = Socket.prototype.connect as (this: Socket, options: { path: string }, onConnect: () => void) => Socket;
  Socket.prototype.connect = function connect(this: Socket, ...args: unknown[]): Socket {
    const [target, listener] = (Array.isArray(args[0]) ? args[0] : normalizeArguments(args)) as [Target, unknown];
    if (typeof listener === 'function') this.once('connect', listener as () => void);
    connectThrough(this as Internals, target, (raw, onConnect) => connectDirectly.call(raw, { path: proxyPath }, onConnect));
    return this;
  };
  return connectDirectly as typeof Socket.prototype.connect;
}

function connectThrough(socket: Internals, target: Target, dialProxy: (raw: Socket, onConnect: () => void) => void): void {
  const host = String(target.host ?? 'localhost');
  const port = Number(target.port);
  const failed = (code: string, reason: string) => failure(code, reason, host, port);
  if (socket.destroyed) socket._undestroy();
  socket.connecting = true;
  if (target.path || /[\s\0]/.test(host) || !(port > 0 && port < 65536)) {
    process.nextTick(() => socket.destroy(failed('EACCES', target.path ? 'only TCP connections are possible' : 'not a host and port')));
    return;
  }
  const raw = new Socket() as Internals;
  const fail = (error: Error): void => {
    raw.destroy();
    if (!socket.destroyed) socket.destroy(error);
  };
  const onEnd = (): void => fail(failed('ECONNRESET', 'the egress proxy closed the connection'));
  raw.once('error', ({ code = 'ECONNRESET' }: NodeJS.ErrnoException) => {
    if (code === 'EMFILE') fail(failed(code, 'too many open files (are connections not closed?)'));
    // The proxy does not wait for the requests of all connections that it refuses
    else if (code === 'EPIPE') fail(failed('EMFILE', 'too many connections'));
    else fail(failed(code === 'ENOENT' ? 'ENETUNREACH' : code, 'the egress proxy cannot be reached'));
  });
  raw.once('end', onEnd);
  socket.once('close', () => {
    if (raw._handle) raw.destroy();
  });

  let head: Buffer = Buffer.alloc(0);
  raw.on('data', function onData(chunk: Buffer) {
    head = head.length > 0 ? Buffer.concat([head, chunk]) : chunk;
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) {
      if (head.length > proxyHeadBytes) fail(failed('EPROTO', 'no reply from the egress proxy'));
      return;
    }
    raw.off('data', onData);
    raw.off('end', onEnd);
    const [, status, code, ...reason] = head.toString('latin1', 0, end).split('\r\n')[0]!.split(' ');
    if (status !== '200') return fail(failed(code ?? 'EACCES', reason.join(' ')));
    if (socket.destroyed) return void raw.destroy();
    handOver(raw, socket, head.subarray(end + 4));
  });
  dialProxy(raw, () => raw.write(`CONNECT ${isIPv6(host) ? `[${host}]` : host}:${port} HTTP/1.1\r\n\r\n`));
}

/** The proxy's connection becomes the socket's own. */
function handOver(raw: Internals, socket: Internals, first: Buffer): void {
  const handle = raw._handle!;
  raw._handle = null;
  // Without it, the socket assumes that it is already being read, and never reads
  handle.reading = false;
  handle.readStop();
  socket[reinitialize!]!(handle);
  socket.connecting = false;
  // Where the server speaks first
  if (first.length > 0) {
    if (socket.encrypted) socket._handle!.receive(first);
    else socket.push(first);
  }
  socket.emit('connect');
  socket.emit('ready');
  if (!socket.isPaused() && !socket.destroyed) socket.read(0);
}

function failure(code: string, reason: string, host: string, port: number): Error {
  return Object.assign(new Error(`connect ${code} ${host}:${port}${reason && `: ${reason}`}`), {
    code,
    syscall: 'connect',
    hostname: host,
    port,
  });
}
