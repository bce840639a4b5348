import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AddressGuard } from '#egress';
import { cpuSeconds } from '#testing';
import { defaultEgressLimits, EgressBudget, type EgressLimits } from './egress-budget.js';
import { EgressProxy } from './egress-proxy.js';

describe('the proxy of one runner process', () => {
  let remote: Server;
  let port: number;
  let path: string;
  let proxy: EgressProxy | undefined;
  let budget: EgressBudget;

  beforeEach(async () => {
    path = join(tmpdir(), `sluice-proxy-${randomBytes(6).toString('hex')}`);
    remote = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => socket.write(data));
    });
    await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve));
    port = (remote.address() as AddressInfo).port;
  });
  afterEach(() => {
    proxy?.close();
    remote.close();
  });

  const charge = jest.fn<(ms: number) => void>();
  const start = async (limits: Partial<EgressLimits> = {}, lookup = async () => [{ address: '127.0.0.1' }]) => {
    const guard = AddressGuard.fromConfig(`127.0.0.1:${port}`, { lookup });
    const all = { ...defaultEgressLimits, ...limits };
    proxy = await EgressProxy.listen(path, guard, all);
    charge.mockReset();
    budget = new EgressBudget(all, charge);
    proxy.charge(budget);
    return proxy;
  };
  const charged = (): number => charge.mock.calls.reduce((sum, [ms]) => sum + ms, 0);

  /** Everything that comes back for these bytes until the proxy closes, or until `until` is in it. */
  const say = (bytes: string | Buffer, until?: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(path, () => void socket.write(bytes));
      let response = '';
      socket.on('data', (data) => {
        response += data.toString();
        if (until !== undefined && response.includes(until)) socket.destroy();
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(response));
    });

  it('reports a process that continues to connect after many refusals', async () => {
    await start({ perMinute: 1, refusedPerMinute: 3 });
    let isFlooded = false;
    void proxy!.flooded.then(() => (isFlooded = true));
    const refused = `CONNECT api.test:${port} HTTP/1.1\r\n\r\n`;
    await say(refused, '200');
    for (let n = 0; n < 3; n++) await say(refused);
    expect(isFlooded).toBe(false);
    await say(refused);
    expect(isFlooded).toBe(true);
  });

  it('forwards bytes both ways, including those that arrive with the request', async () => {
    await start();
    expect(await say(`CONNECT api.test:${port} HTTP/1.1\r\n\r\nfirst`, 'first')).toBe('HTTP/1.1 200 OK\r\n\r\nfirst');
    expect(proxy!.counts).toEqual({ connections: 1, refused: 0, bytesUp: 5, bytesDown: 5 });
  });

  it.each([
    ['GET http://127.0.0.1/ HTTP/1.1\r\n\r\n', 'EPROTO'],
    ['CONNECT 1.1.1.1:99999 HTTP/1.1\r\n\r\n', 'EPROTO'],
    ['CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n', 'EACCES'],
    ['CONNECT [::1]:80 HTTP/1.1\r\n\r\n', 'EACCES'],
    ['CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n', 'EACCES'],
    [randomBytes(5000), 'EPROTO'],
  ])('refuses %j', async (bytes, code) => {
    await start();
    expect(await say(bytes)).toMatch(new RegExp(`^HTTP/1.1 403 ${code} .*\r\n\r\n$`));
  });

  it('resolves the name for each connection, so a name that changes to a private address is refused', async () => {
    const addresses = ['127.0.0.1', '10.0.0.1'];
    let asked = 0;
    await start({}, async () => [{ address: addresses[asked++]! }]);
    expect(await say(`CONNECT rebind.test:${port} HTTP/1.1\r\n\r\nx`, 'x')).toContain('200 OK');
    expect(await say(`CONNECT rebind.test:${port} HTTP/1.1\r\n\r\nx`)).toContain('403 EACCES');
    expect(asked).toBe(2);
  });

  it('reports when the server refuses the connection', async () => {
    await start();
    remote.close();
    await new Promise((resolve) => remote.once('close', resolve));
    expect(await say(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`)).toContain('403 ECONNREFUSED');
  });

  it('closes a connection that sends no request', async () => {
    await start({ headMs: 50 });
    expect(await say('CONN')).toBe('');
  });

  it('makes connections over the limit wait', async () => {
    await start({ connections: 2 });
    const request = `CONNECT api.test:${port} HTTP/1.1\r\n\r\nx`;
    const responses = await Promise.all(Array.from({ length: 20 }, () => say(request, 'x')));
    expect(responses.every((response) => response.endsWith('x'))).toBe(true);
  });

  it.each<[string, Partial<EgressLimits>, number]>([
    ['over the rate', { perMinute: 3, idleMs: 300 }, 2],
    ['over the line', { connections: 1, waiting: 1, connectMs: 100, idleMs: 300 }, 4],
  ])('refuses connections %s', async (_, limits, refused) => {
    await start(limits);
    const responses = await Promise.all(Array.from({ length: 5 }, () => say(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`, 'EMFILE')));
    expect(responses.filter((response) => response.includes('403 EMFILE'))).toHaveLength(refused);
  });

  it.each<[string, Partial<EgressLimits>, string]>([
    ['too many bytes up', { bytesUp: 10 }, 'x'.repeat(100)],
    ['too many bytes down', { bytesDown: 10 }, 'x'.repeat(100)],
    ['idling', { idleMs: 50 }, ''],
    ['its age', { lifeMs: 50 }, ''],
  ])('ends a connection for %s', async (_, limits, bytes) => {
    await start(limits);
    expect(await say(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n${bytes}`)).toMatch(/^HTTP\/1.1 200 OK|^$/);
  });

  /** Sends single bytes, each of which is a chunk if it is read at once, and returns the sizes of the chunks that come back. */
  const drip = (bytes: number) =>
    new Promise<number[]>((resolve) => {
      const sizes: number[] = [];
      let received = 0;
      const next = (sent: number): void => {
        socket.write('x');
        if (sent < bytes) setImmediate(next, sent + 1);
      };
      const socket = connect(path, () => void socket.write(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`));
      socket.setNoDelay(true);
      socket.once('data', () => {
        socket.on('data', ({ length }) => {
          sizes.push(length);
          if ((received += length) < bytes) return;
          socket.destroy();
          resolve(sizes);
        });
        next(1);
      });
    });

  it('reads single bytes later, when many of them have become one chunk', async () => {
    await start({ chunksPerSecond: 100 });
    const sizes = await drip(5000);
    expect(sizes.length).toBeLessThan(500);
    expect(Math.max(...sizes)).toBeGreaterThan(50);
  });

  it('shares the chunks of an account between its connections', async () => {
    await start({ chunksPerSecond: 100 });
    const sizes = await Promise.all(Array.from({ length: 20 }, () => drip(1000)));
    expect(sizes.flat().length).toBeLessThan(1000);
  });

  /** A connection of a process, and the server's end of it, which does not read. */
  const connected = async (): Promise<{ client: Socket; server: Socket }> => {
    const accepted = new Promise<Socket>((resolve) =>
      remote.once('connection', (socket) => resolve(socket.removeAllListeners('data').pause())),
    );
    const client = connect({ path, allowHalfOpen: true }, () => void client.write(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`));
    await once(client, 'data');
    return { client, server: await accepted };
  };
  /** Sends this much to a server that does not read it, and ends the process. @returns the server's end of the connection */
  const abandon = async (bytes: number, serverEnds = false): Promise<Socket> => {
    const { client, server } = await connected();
    client.write(Buffer.alloc(bytes));
    while (proxy!.counts.bytesUp < bytes) await sleep(10);
    if (serverEnds) {
      server.end();
      await once(client.resume(), 'end');
    }
    proxy!.close();
    return server;
  };
  /** Lets the server read again. @returns how much it receives, and how its connection ends */
  const rest = (server: Socket) =>
    new Promise<{ received: number; end: string }>((resolve) => {
      let received = 0;
      server.on('data', ({ length }: Buffer) => (received += length));
      server.on('error', (error: NodeJS.ErrnoException) => resolve({ received, end: error.code! }));
      server.on('end', () => resolve({ received, end: 'end' })).resume();
    });

  it.each([
    ['keeps the connection open', false],
    ['has ended the connection', true],
  ])('discards what a server that %s has not read, and only then frees the slot', async (_, serverEnds) => {
    await start({ connections: 1, lingerMs: 300 });
    const server = await abandon(2 << 20, serverEnds);
    expect(await budget.take()).toBe(true);
    const { received, end } = await rest(server);
    expect(end).toBe('ECONNRESET');
    expect(received).toBeLessThan(2 << 20);
  });

  it('delivers what a process sent before it ended to a server that reads late', async () => {
    await start();
    expect(await rest(await abandon(2 << 20))).toEqual({ received: 2 << 20, end: 'end' });
  });

  it('delivers what a process sends to a server that has ended the connection before, and reads slowly', async () => {
    await start({ lingerMs: 1000 });
    const { client, server } = await connected();
    server.end();
    await once(client.resume(), 'end');
    client.end(Buffer.alloc(2 << 20));
    server.on('data', () => {
      server.pause();
      setTimeout(() => server.resume(), 3);
    });
    expect(await rest(server)).toEqual({ received: 2 << 20, end: 'end' });
  });

  it('ends a connection on which little was sent at once, also if the server has ended it before', async () => {
    await start();
    const { client, server } = await connected();
    server.end();
    await once(client.resume(), 'end');
    const ended = rest(server);
    client.end('x');
    expect(await ended).toEqual({ received: 1, end: 'end' });
    expect(await budget.take()).toBe(true);
  });

  it('resets the connection to a server that still sends when the process has closed it', async () => {
    await start();
    const { client, server } = await connected();
    const send = (): void => void server.write(Buffer.alloc(65_536), (error) => (error ? undefined : send()));
    const closed = new Promise((resolve) => server.on('error', () => {}).once('close', resolve));
    send();
    await once(client, 'data');
    client.destroy();
    const before = proxy!.counts.bytesDown;
    await closed;
    expect(proxy!.counts.bytesDown - before).toBeLessThan(1 << 20);
  });

  it('charges the account for its chunks', async () => {
    await start({ chunksPerSecond: 1e6 });
    await drip(2000);
    expect(charged()).toBeGreaterThan(5);
  });

  it('refuses a request that arrives in single bytes', async () => {
    await start();
    const refused = () =>
      new Promise<string>((resolve) => {
        const head = [...`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`];
        const next = (): void => {
          const byte = head.shift();
          if (byte === undefined || socket.destroyed) return;
          socket.write(byte);
          setTimeout(next, 2);
        };
        const socket = connect(path, next);
        socket.once('data', (data) => resolve(data.toString()));
        socket.on('error', () => {}).once('close', () => resolve(''));
      });
    // a byte that is written after the refusal may end the connection before the response is read
    let response = '';
    while (response === '') response = await refused();
    expect(response).toContain('403 EPROTO');
  });

  it('forwards many megabytes with little CPU time', async () => {
    await start();
    const size = 12 << 20;
    let received = 0;
    const seconds = await cpuSeconds(
      () =>
        new Promise<void>((resolve) => {
          const socket = connect(path, () => void socket.write(`CONNECT api.test:${port} HTTP/1.1\r\n\r\n`));
          socket.once('data', () => {
            socket.on('data', ({ length }) => {
              if ((received += length) >= size) resolve();
            });
            socket.write(Buffer.alloc(size));
          });
        }),
    );
    expect(received).toBe(size);
    expect(seconds).toBeLessThan(5);
  });

  it('forwards nothing while its process has no account', async () => {
    const guard = AddressGuard.fromConfig(`127.0.0.1:${port}`);
    proxy = await EgressProxy.listen(path, guard, defaultEgressLimits);
    expect(await say(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toContain('403 EMFILE');
  });
});
