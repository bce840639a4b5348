import { describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

const require = createRequire(import.meta.url);
interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  findBroker(node: object): Promise<object>;
}
const Cluster = require('kafkajs/src/cluster/index.js') as new (settings: object) => Cluster;
const { prototype: pool } = require('kafkajs/src/cluster/brokerPool.js') as { prototype: object };

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
