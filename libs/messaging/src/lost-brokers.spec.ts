import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

const require = createRequire(import.meta.url);
const { prototype: clusters } = require('kafkajs/src/cluster/index.js') as { prototype: object };
const { prototype: pools } = require('kafkajs/src/cluster/brokerPool.js') as { prototype: object };
const { prototype: queues } = require('kafkajs/src/network/requestQueue/index.js') as { prototype: object };
const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup.js') as new (options: object) => {
  heartbeat(options: object): Promise<void>;
};

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
function client(brokers: ReturnType<typeof broker>[], left: string[] = []) {
  const asked: string[] = [];
  const brokerPool = Object.assign(Object.create(pools), {
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

const logger = { namespace: () => logger };
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
    const { one, asked } = client([broker('1', [late]), broker('2')]);
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
    const { one } = client([broker('1', [late]), broker('2', [other])], ['1']);
    await connect(one);
    await jest.advanceTimersByTimeAsync(7000);
    expect([late.errors, other.errors]).toEqual([['The broker does not respond'], []]);
    expect(Object.keys(one.brokerPool.brokers)).toEqual(['2']);
  });

  it('waits for a late response if it knows one broker only', async () => {
    const late = request();
    const { one, asked } = client([broker('1', [late])]);
    await connect(one);
    await jest.advanceTimersByTimeAsync(20_000);
    expect([asked, late.errors]).toEqual([[], []]);
  });

  it('requests nothing once it is disconnected', async () => {
    const { one, asked } = client([broker('1', [request()]), broker('2')]);
    await connect(one);
    await one.disconnect();
    await jest.advanceTimersByTimeAsync(20_000);
    expect(asked).toEqual([]);
  });

  it('takes another broker if the one to which it connects or logs in does not respond', async () => {
    const [greeting, login] = [request('ApiVersions'), request('SaslAuthenticate')];
    const { one } = client([broker('1', [greeting]), broker('2', [login])]);
    await connect(one);
    await jest.advanceTimersByTimeAsync(8000);
    expect([greeting.errors, login.errors]).toEqual([['The broker does not respond'], ['The broker does not respond']]);
  });
});

describe('a heartbeat of a kafkajs consumer', () => {
  const COORDINATOR = { nodeId: 1, host: 'one', port: 9092 };
  const OTHER = { nodeId: 2, host: 'two', port: 9092 };

  it.each([
    ['makes it join again if the cluster has lost the coordinator', [OTHER], 'NOT_COORDINATOR_FOR_GROUP'],
    ['makes it join again if another broker has the number of the coordinator', [{ ...OTHER, nodeId: 1 }], 'NOT_COORDINATOR_FOR_GROUP'],
    ['goes to the coordinator while the cluster has it, also if the client has opened another connection', [OTHER, COORDINATOR], 'sent'],
    ['goes to the coordinator while the client has no metadata', null, 'sent'],
  ])('%s', async (_, brokers, expected) => {
    const sent: string[] = [];
    const { nodeId, ...connectionPool } = COORDINATOR;
    const cluster = { brokerPool: { brokers: {}, metadata: brokers && { brokers } } };
    const member = Object.assign(new ConsumerGroup({ logger, cluster, instrumentationEmitter: { emit: () => {} } }), {
      coordinator: { nodeId, connectionPool, heartbeat: async () => void sent.push('sent') },
      memberId: 'm',
    });
    await member.heartbeat({ interval: 0 }).catch(({ type }: { type: string }) => sent.push(type));
    expect(sent).toEqual([expected]);
  });

  it('is sent although the clock was set back', async () => {
    const heartbeat = jest.fn(async () => {});
    const member = Object.assign(
      new ConsumerGroup({ logger, cluster: { brokerPool: { metadata: null } }, instrumentationEmitter: { emit: () => {} } }),
      {
        coordinator: { connectionPool: {}, heartbeat },
        memberId: 'm',
      },
    );
    const now = Date.now();
    const clock = jest.spyOn(Date, 'now');
    const sentAt = async (ms: number) => {
      clock.mockReturnValue(now + ms);
      await member.heartbeat({ interval: 1500 });
      return heartbeat.mock.calls.length;
    };
    expect([await sentAt(2000), await sentAt(3000), await sentAt(-3600_000), await sentAt(-3600_000 + 1000)]).toEqual([1, 1, 2, 2]);
    clock.mockRestore();
  });
});
