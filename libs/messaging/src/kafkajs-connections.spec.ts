import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import './kafkajs-connections.js';

// the spec needs the instances that kafkajs itself loads
const load = createRequire(import.meta.url);
const logger = { namespace: () => logger, debug: () => {}, warn: () => {}, error: () => {} };

interface RequestQueue {
  pending: unknown[];
  checkPendingRequests(): void;
  maybeThrottle(ms: number): void;
  scheduleRequestTimeoutCheck(): void;
  push(request: {
    entry: { correlationId: number; apiName?: string; reject?: (error: Error) => void };
    expectResponse: boolean;
    sendRequest(): void;
  }): void;
  destroy(): void;
  waitForPendingRequests(): Promise<void>;
}

const RequestQueueClass = load('kafkajs/src/network/requestQueue/index.js') as new (options: object) => RequestQueue;

const newQueue = (options: object = {}) =>
  new RequestQueueClass({
    maxInFlightRequests: null,
    requestTimeout: 1000,
    enforceRequestTimeout: false,
    clientId: 'c',
    broker: 'b',
    logger,
    ...options,
  });

const ConnectionClass = load('kafkajs/src/network/connection.js') as new (options: object) => {
  isConnected(): boolean;
  connect(): Promise<boolean>;
  disconnect(): Promise<boolean>;
  sendAuthRequest(protocol: object): Promise<unknown>;
  send(protocol: object): Promise<unknown>;
};

describe('a kafkajs connection', () => {
  const Encoder = load('kafkajs/src/protocol/encoder.js') as new () => object;
  const request = { apiKey: 18, apiVersion: 0, apiName: 'ApiVersions', encode: async () => new Encoder() };
  const response = { decode: async (payload: Buffer) => payload, parse: async (payload: Buffer) => payload.toString() };
  const sockets: EventEmitter[] = [];
  /** A response with this text, as it arrives: its size, the id of its request, its content. */
  const bytesOf = (correlationId: number, text: string) => {
    const bytes = Buffer.concat([Buffer.alloc(8), Buffer.from(text)]);
    bytes.writeInt32BE(bytes.length - 4);
    bytes.writeInt32BE(correlationId, 4);
    return bytes;
  };
  const newConnection = () => {
    sockets.length = 0;
    return new ConnectionClass({
      ...{ host: 'h', port: 1, clientId: 'c', logger: quiet, requestTimeout: 1000, connectionTimeout: 1000 },
      socketFactory: ({ onConnect }: { onConnect(): void }) => {
        setImmediate(onConnect);
        const socket = Object.assign(new EventEmitter(), { write: () => {}, end: () => {}, unref: () => {}, destroy: () => {} });
        sockets.push(socket);
        return socket;
      },
    });
  };
  const connected = async () => {
    const connection = newConnection();
    await connection.connect();
    return connection;
  };
  const quiet = { ...logger, namespace: () => quiet, error: () => {} };

  it('receives the responses of a connection after one that has ended in the middle of a response', async () => {
    const connection = await connected();
    const interrupted = connection.send({ request, response });
    await settled();
    sockets[0]!.emit('data', bytesOf(0, 'x'.repeat(1000)).subarray(0, 60));
    sockets[0]!.emit('end');
    await expect(interrupted).rejects.toThrow('Closed connection');
    await connection.connect();
    const repeated = connection.send({ request, response });
    await settled();
    // late
    sockets[0]!.emit('data', Buffer.alloc(10));
    sockets[1]!.emit('data', bytesOf(1, 'whole'));
    expect(await repeated).toBe('whole');
    await connection.disconnect();
  });

  it('is opened once for all requests that need it at the same time, and again after it has failed', async () => {
    const connection = newConnection();
    await Promise.all([connection.connect(), connection.connect()]);
    expect(sockets).toHaveLength(1);
    sockets[0]!.emit('error', new Error('ECONNRESET'));
    await settled();
    await Promise.all([connection.connect(), connection.connect()]);
    expect(sockets).toHaveLength(2);
    await connection.disconnect();
  });

  it('ends an authentication that its predecessor was in', async () => {
    const connection = await connected();
    const authenticated = connection.sendAuthRequest({ request: { encode: async () => '' }, response });
    sockets[0]!.emit('error', new Error('ECONNRESET'));
    await settled();
    const [reason] = await Promise.all([authenticated.catch(String), connection.connect()]);
    expect(reason).toContain('Connection closed by the server');
    await connection.disconnect();
  });
});

it('a kafkajs connection is not closed by the end of its predecessor', async () => {
  const { promise: accepted, resolve: accept } = Promise.withResolvers<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => accept(socket.on('error', () => {})));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connection = new ConnectionClass({
    ...{ host: '127.0.0.1', port, clientId: 'c', logger, requestTimeout: 1000, connectionTimeout: 1000 },
    socketFactory: ({ onConnect }: { onConnect(): void }) => connect(port, '127.0.0.1', onConnect),
  });
  await connection.connect();
  await connection.disconnect();
  await connection.connect();
  (await accepted).destroy();
  await settled();
  expect(connection.isConnected()).toBe(true);
  await connection.disconnect();
  server.close();
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 10));

describe('the request queue of a kafkajs connection', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('sets no timer while no request waits', () => {
    jest.useFakeTimers();
    newQueue().checkPendingRequests();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('sends a request that has to wait as soon as the broker allows it', () => {
    jest.useFakeTimers();
    const queue = newQueue();
    const sent: number[] = [];
    queue.maybeThrottle(500);
    queue.push({ entry: { correlationId: 1 }, expectResponse: true, sendRequest: () => sent.push(1) });
    expect([sent, queue.pending.length]).toEqual([[], 1]);
    jest.advanceTimersByTime(600);
    expect([sent, queue.pending.length]).toEqual([[1], 0]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('ends requests that exceed their time limit, with one timer for all connections', () => {
    jest.useFakeTimers();
    const queues = [newQueue({ enforceRequestTimeout: true }), newQueue({ enforceRequestTimeout: true })];
    const failed: string[] = [];
    for (const [index, queue] of queues.entries()) {
      queue.scheduleRequestTimeoutCheck();
      queue.push({
        entry: { correlationId: 1, apiName: 'Produce', reject: ({ message }) => failed.push(`${index}: ${message}`) },
        expectResponse: true,
        sendRequest: () => {},
      });
    }
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(999);
    expect(failed).toEqual([]);
    jest.advanceTimersByTime(1001);
    expect(failed).toEqual([0, 1].map((index) => expect.stringMatching(new RegExp(`^${index}: Request Produce.* timed out$`))));
    for (const queue of queues) queue.destroy();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('ends late requests and sends waiting ones although the clock was set back', () => {
    jest.useFakeTimers();
    const queue = newQueue({ enforceRequestTimeout: true });
    queue.scheduleRequestTimeoutCheck();
    const [sent, failed]: [number[], string[]] = [[], []];
    const push = (correlationId: number) => {
      const entry = { correlationId, apiName: 'Produce', reject: ({ message }: Error) => void failed.push(message) };
      queue.push({ entry, expectResponse: true, sendRequest: () => sent.push(correlationId) });
    };
    jest.advanceTimersByTime(1000);
    push(1);
    queue.maybeThrottle(500);
    push(2);
    const now = Date.now();
    jest.setSystemTime(now - 3600_000);
    jest.advanceTimersByTime(1000);
    expect(sent).toEqual([1, 2]);
    jest.advanceTimersByTime(2000);
    expect(failed).toHaveLength(2);
    queue.destroy();
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each(['ApiVersions', 'SaslAuthenticate'])(
    'ends a login whose %s gets no response, so that the client takes another broker',
    (apiName) => {
      jest.useFakeTimers();
      const queue = newQueue({ enforceRequestTimeout: true, requestTimeout: 30_000 });
      queue.scheduleRequestTimeoutCheck();
      const failed: string[] = [];
      const entry = { correlationId: 1, apiName, reject: ({ message }: Error) => void failed.push(message) };
      queue.push({ entry, expectResponse: true, sendRequest: () => {} });
      jest.advanceTimersByTime(6000);
      expect(failed).toEqual([]);
      jest.advanceTimersByTime(2000);
      expect(failed).toEqual(['The broker does not respond']);
      queue.destroy();
    },
  );

  it('no longer looks at a connection that was closed', () => {
    jest.useFakeTimers();
    newQueue({ enforceRequestTimeout: true, isConnected: () => false }).scheduleRequestTimeoutCheck();
    jest.advanceTimersByTime(1000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    ['does not wait for fetches when its connection is closed, and fails them', ['Fetch', 'Fetch'], true],
    ['waits for other requests', ['Fetch', 'OffsetCommit'], false],
  ])('%s', async (_, requests, ends) => {
    const queue = newQueue();
    const failed: string[] = [];
    for (const [index, apiName] of requests.entries()) {
      const entry = { correlationId: index, apiName, reject: ({ message }: Error) => void failed.push(`${apiName}: ${message}`) };
      queue.push({ entry, expectResponse: true, sendRequest: () => {} });
    }
    let ended = false;
    void queue.waitForPendingRequests().then(() => (ended = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toBe(ends);
    // otherwise, a consumer whose cluster has lost a broker would wait for it without end
    expect(failed).toEqual(ends ? ['Fetch: Closed connection', 'Fetch: Closed connection'] : []);
    queue.destroy();
  });

  it('fails a request that was sent while its connection was being closed', async () => {
    const queue = newQueue();
    const failed: string[] = [];
    await queue.waitForPendingRequests();
    const entry = { correlationId: 1, apiName: 'Produce', reject: ({ message }: Error) => void failed.push(message) };
    queue.push({ entry, expectResponse: true, sendRequest: () => {} });
    queue.destroy();
    expect(failed).toEqual(['Closed connection']);
  });
});

interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  findBroker(node: object): Promise<object>;
}
const Cluster = load('kafkajs/src/cluster/index.js') as new (settings: object) => Cluster;
const { prototype: pool } = load('kafkajs/src/cluster/brokerPool.js') as { prototype: object };

/** A client of one broker, and the number of connections to it that are open. */
function client() {
  const state = { open: 0 };
  const broker = {
    nodeId: '0',
    isConnected: () => state.open > 0,
    connect: async () => void state.open++,
    disconnect: async () => void (state.open = 0),
  };
  const retrier = (attempt: (bail: (error: Error) => never) => Promise<unknown>) =>
    attempt((error) => {
      throw error;
    });
  const one = new Cluster({ logger: { namespace: () => ({}) }, brokers: ['broker:1'], clientId: 'client' });
  return {
    state,
    one: Object.assign(one, { brokerPool: Object.assign(Object.create(pool), { seedBroker: broker, brokers: { 0: broker }, retrier }) }),
  };
}

describe('a kafkajs client that has been disconnected', () => {
  it.each<[string, (one: Cluster) => Promise<unknown>]>([
    ['looks for a broker', (one) => one.findBroker({ nodeId: '0' })],
    ['asks for metadata', (one) => one.refreshMetadata()],
  ])('opens no connection if a request in progress %s', async (_, request) => {
    const { state, one } = client();
    await one.connect();
    expect(state.open).toBe(1);
    await one.disconnect();
    await expect(request(one)).rejects.toThrow();
    expect(state.open).toBe(0);
  });

  it('opens a connection again if it is connected again', async () => {
    const { state, one } = client();
    await one.connect();
    await one.disconnect();
    await one.connect();
    expect(state.open).toBe(1);
    await one.disconnect();
  });
});

it.each([
  ['keeps its metadata until they expire', 29_000, 0],
  ['refreshes its metadata when they have expired', 31_000, 1],
  ['refreshes its metadata after the clock was set back, which would keep them for longer', -3600_000, 1],
])('a kafkajs client %s', async (_, ms, expected) => {
  const refreshMetadata = jest.fn(async () => {});
  const now = Date.now();
  const one = Object.assign(Object.create(pool) as { refreshMetadataIfNecessary(topics: string[]): Promise<void> }, {
    ...{ metadata: { topicMetadata: [] }, metadataMaxAge: 30_000, metadataExpireAt: now + 30_000, refreshMetadata },
  });
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now + ms);
  await one.refreshMetadataIfNecessary([]);
  clock.mockRestore();
  expect(refreshMetadata).toHaveBeenCalledTimes(expected);
});

const { prototype: clusters } = load('kafkajs/src/cluster/index.js') as { prototype: object };
const { prototype: queues } = load('kafkajs/src/network/requestQueue/index.js') as { prototype: object };

interface Client {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  brokerPool: {
    brokers: Record<string, object>;
    findConnectedBroker(): Promise<{ nodeId: string }>;
  };
}

/** Kafka's API of a request that waits for its response, and the errors with which it failed. */
interface Pending {
  apiName: string;
  errors: string[];
}

const request = (apiName = 'Produce'): Pending => ({ apiName, errors: [] });

/** A broker with a connection on which these requests wait. */
function broker(nodeId: string, waiting: Pending[] = []) {
  const entry = ({ apiName, errors }: Pending) => ({ apiName, errors });
  const requestQueue = Object.assign(Object.create(queues), {
    pending: [],
    inflight: new Map(waiting.map((each, id) => [id, { sentAt: Date.now(), entry: entry(each) }])),
    rejectAll({ message }: Error) {
      for (const { errors } of waiting) errors.push(message);
      this.inflight.clear();
    },
  });
  return {
    nodeId,
    isConnected: () => true,
    connectionPool: { pool: [{ requestQueue }] },
    disconnect: () => requestQueue.waitForPendingRequests() as Promise<void>,
  };
}

/** A client of these brokers. `asked`: the brokers from which it has requested metadata; afterwards it knows the brokers of `left` no more. */
function clientOf(brokers: ReturnType<typeof broker>[], left: string[] = []) {
  const asked: string[] = [];
  const brokerPool = Object.assign(Object.create(pool), {
    seedBroker: brokers[0],
    brokers: Object.fromEntries(brokers.map((each) => [each.nodeId, each])),
    async refreshMetadata(this: Client['brokerPool'] & { brokers: Record<string, ReturnType<typeof broker>> }) {
      asked.push((await this.findConnectedBroker()).nodeId);
      for (const nodeId of left) {
        await this.brokers[nodeId]?.disconnect();
        delete this.brokers[nodeId];
      }
    },
    disconnect: () => Promise.resolve(),
  });
  const one = Object.assign(Object.create(clusters) as Client, { brokerPool, targetTopics: new Set(['events']) });
  // each class keeps its own under a symbol
  const connectSymbol = Object.getOwnPropertySymbols(new (clusters.constructor as new (options: object) => object)(OPTIONS)).find(
    ({ description }) => description === 'private:Cluster:connect',
  );
  Object.assign(one, { [connectSymbol as symbol]: () => Promise.resolve() });
  return { one, asked };
}

const OPTIONS = { logger, brokers: ['broker:1'], clientId: 'client' };

describe('a client of several brokers', () => {
  const connected: Client[] = [];
  const connect = async (one: Client) => {
    connected.push(one);
    await one.connect();
  };
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(async () => {
    for (const one of connected.splice(0)) await one.disconnect();
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  it('requests metadata from another broker while a response is late, every three seconds', async () => {
    const late = request();
    const { one, asked } = clientOf([broker('1', [late]), broker('2')]);
    await connect(one);
    await jest.advanceTimersByTimeAsync(6000);
    expect(asked).toEqual([]);
    await jest.advanceTimersByTimeAsync(1000);
    expect(asked).toEqual(['2']);
    await jest.advanceTimersByTimeAsync(3000);
    expect(asked).toEqual(['2', '2']);
    // it may be slow, and the cluster has not lost it
    expect(late.errors).toEqual([]);
  });

  it('fails the requests to a broker that the cluster has lost', async () => {
    const [late, other] = [request('Heartbeat'), request('Fetch')];
    const { one } = clientOf([broker('1', [late]), broker('2', [other])], ['1']);
    await connect(one);
    await jest.advanceTimersByTimeAsync(7000);
    expect([late.errors, other.errors]).toEqual([['The broker does not respond'], []]);
    expect(Object.keys(one.brokerPool.brokers)).toEqual(['2']);
  });

  it('waits for a late response if it knows one broker only', async () => {
    const late = request();
    const { one, asked } = clientOf([broker('1', [late])]);
    await connect(one);
    await jest.advanceTimersByTimeAsync(20_000);
    expect([asked, late.errors]).toEqual([[], []]);
  });

  it('requests nothing once it is disconnected', async () => {
    const { one, asked } = clientOf([broker('1', [request()]), broker('2')]);
    await connect(one);
    await one.disconnect();
    await jest.advanceTimersByTimeAsync(20_000);
    expect(asked).toEqual([]);
  });
});
