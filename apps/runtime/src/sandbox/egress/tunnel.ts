import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { type AddressGuard, EgressRefused, type ResolvedAddress, withoutBrackets } from '#egress';
import type { EgressBudget, EgressLimits } from './egress-budget.js';
import type { EgressCounts } from './egress-proxy.js';

/**
 * The option of both sockets with which `pause` stops the reading: without it, Node reads on until it has buffered many bytes, which may be one by one.
 */
export const unbuffered = { highWaterMark: 1 };

/** So few bytes may stay in the kernel. */
const fewBytes = 16 * 1024;

/**
 * One connection of a guest to a server. If it has sent more than a few bytes, the connection to the server ends with a reset: after an ordinary close, the
 * kernel would keep what the server has not taken, up to 4 MiB, for minutes, and no limit would count it. If the server has taken everything, the reset has no
 * effect.
 */
export class Tunnel {
  private timer: NodeJS.Timeout | undefined;
  private readonly bytes = { up: 0, down: 0 };

  constructor(
    private readonly client: Socket,
    private readonly guard: Pick<AddressGuard, 'resolve'>,
    private readonly limits: EgressLimits,
    private readonly counts: EgressCounts,
  ) {}

  /** Resolves when both connections are closed. Never rejects. */
  async run(budget: EgressBudget): Promise<void> {
    const { client } = this;
    client.once('close', () => clearTimeout(this.timer));
    const remote = await this.open(budget);
    await closed(client);
    if (remote) await closed(remote);
  }

  /** @returns the connection to the server, which may fail yet; absent: it was refused, or the client has gone */
  private async open(budget: EgressBudget): Promise<Socket | undefined> {
    this.timer = setTimeout(() => this.client.destroy(), this.limits.headMs);
    const request = await this.request();
    clearTimeout(this.timer);
    if (this.client.destroyed) return;
    if (request === null) return void this.refuse('EPROTO', 'only CONNECT');
    try {
      const { all } = await this.guard.resolve(request.host, request.port);
      if (!this.client.destroyed) return this.dial(request, all, budget);
    } catch (error) {
      if (error instanceof EgressRefused) this.refuse(error.code, error.message);
      else this.refuse('EACCES', 'refused');
    }
  }

  /** Refuses after the request has arrived. A client that is refused earlier sees a broken connection without a reason. */
  async refuseRequest(code: string, reason: string): Promise<void> {
    this.timer = setTimeout(() => this.client.destroy(), this.limits.headMs);
    await this.request();
    clearTimeout(this.timer);
    if (!this.client.destroyed) this.refuse(code, reason);
  }

  /** The code becomes `error.code` in the component; the reason is empty where the code is enough. */
  refuse(code: string, reason: string): void {
    this.counts.refused++;
    this.client.end(`HTTP/1.1 403 ${code} ${reason.replace(/[^\x20-\x7e]/g, '?')}\r\n\r\n`);
    this.client.destroySoon();
  }

  private request(): Promise<ConnectRequest | null> {
    const { client } = this;
    return new Promise((resolve) => {
      let head: Buffer = Buffer.alloc(0);
      let chunks = 0;
      const onData = (chunk: Buffer): void => {
        head = head.length > 0 ? Buffer.concat([head, chunk]) : chunk;
        const request = ++chunks > mostHeadChunks ? 'bad' : readConnectRequest(head);
        if (request === 'more') return;
        client.off('data', onData);
        client.pause();
        resolve(request === 'bad' ? null : request);
      };
      client.on('data', onData);
      client.once('end', () => resolve(null));
      client.once('close', () => resolve(null));
      client.resume();
    });
  }

  private dial(request: ConnectRequest, addresses: ResolvedAddress[], budget: EgressBudget): Socket {
    const { client, limits } = this;
    const host = withoutBrackets(request.host);
    // Connects only to addresses that were checked. It tries the next one soon after the first, because one of them may be unreachable from here
    const pinned: LookupFunction = (_name, _options, callback) => callback(null, addresses);
    const remote = connect({
      host: isIP(host) ? host : 'checked',
      port: request.port,
      lookup: pinned,
      autoSelectFamily: true,
      allowHalfOpen: true,
      noDelay: true,
      ...unbuffered,
    });
    const timedOut = new EgressRefused('ETIMEDOUT', `not connected within ${limits.connectMs} ms`);
    this.timer = setTimeout(() => remote.destroy(timedOut), limits.connectMs);
    let connected = false;
    remote.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(this.timer);
      if (connected) client.destroy();
      else this.refuse(error.code ?? 'ECONNRESET', error === timedOut ? error.message : '');
    });
    client.on('close', () => (connected ? this.leave(remote) : remote.destroy()));
    remote.on('connect', () => {
      connected = true;
      clearTimeout(this.timer);
      if (client.destroyed) remote.destroy();
      else this.join(remote, request.rest, budget);
    });
    return remote;
  }

  private join(remote: Socket, first: Buffer, budget: EgressBudget): void {
    const { client, limits, counts, bytes } = this;
    counts.connections++;
    const end = (): void => void client.destroy();
    this.timer = setTimeout(end, limits.lifeMs);
    for (const socket of [client, remote]) socket.setTimeout(limits.idleMs, end);
    const cutOff = (): void => {
      end();
      remote.resetAndDestroy();
    };
    const finished = (): void => {
      if (remote.readableEnded && remote.writableFinished && bytes.up > fewBytes) remote.resetAndDestroy();
    };
    remote.on('end', finished).on('finish', finished);
    remote.on('close', () => client.destroySoon());
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    if (first.length > 0) client.unshift(first);
    forward(client, remote, budget, (length) => {
      counts.bytesUp += length;
      if ((bytes.up += length) > limits.bytesUp) cutOff();
    });
    client.on('end', () => (remote.readableEnded ? this.hangUp(remote) : remote.end()));
    forward(remote, client, budget, (length) => {
      counts.bytesDown += length;
      if ((bytes.down += length) > limits.bytesDown) cutOff();
    });
    remote.on('end', () => client.end());
    client.resume();
  }

  /** The client has gone: what the server still sends resets its connection, as if the process had been connected to it. */
  private leave(remote: Socket): void {
    if (remote.destroyed) return;
    remote.removeAllListeners('data');
    remote.on('data', () => remote.resetAndDestroy()).resume();
    this.hangUp(remote);
  }

  /**
   * Ends the connection to the server. Bytes that the server has not taken in time are discarded. If the server has ended it first, our end comes when that time
   * is over, because Node then closes it.
   */
  private hangUp(remote: Socket): void {
    if (!remote.readableEnded || this.bytes.up <= fewBytes) remote.end();
    const isOver = (): void => void (remote.writableEnded || remote.writableLength > 0 ? remote.resetAndDestroy() : remote.end());
    const timer = setTimeout(isOver, this.limits.lingerMs);
    remote.once('close', () => clearTimeout(timer));
  }
}

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));

/** Sends the bytes that arrive at one end to the other. While a chunk waits for the other end or for the account's turn, what arrives becomes the next one. */
function forward(from: Socket, to: Socket, budget: EgressBudget, count: (bytes: number) => void): void {
  const read = (): void => void from.resume();
  const sent = (): void => budget.nextChunk(read);
  from.on('data', (chunk: Buffer) => {
    count(chunk.length);
    budget.count(chunk.length);
    from.pause();
    to.write(chunk, sent);
  });
}

interface ConnectRequest {
  host: string;
  port: number;
  /** Bytes that arrived after the head */
  rest: Buffer;
}

const headBytes = 1024;
/** A guest writes its request at once. */
const mostHeadChunks = 8;
const headEnd = '\r\n\r\n';

/**
 * Parses a guest's request to its proxy: one `CONNECT host:port`, nothing else of HTTP.
 * @returns the request, `more` when the head is not complete, `bad` when it is malformed
 */
export function readConnectRequest(bytes: Buffer): ConnectRequest | 'more' | 'bad' {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return bytes.length > headBytes ? 'bad' : 'more';
  if (end > headBytes) return 'bad';
  const [line] = bytes.toString('latin1', 0, end).split('\r\n');
  const match = /^CONNECT (\[[0-9a-f:.]+\]|[\w.-]{1,253}):(\d{1,5}) HTTP\/1\.1$/i.exec(line!);
  if (!match) return 'bad';
  const port = Number(match[2]);
  // net.connect throws on an invalid port
  if (port < 1 || port > 65535) return 'bad';
  return { host: match[1]!, port, rest: bytes.subarray(end + headEnd.length) };
}
