import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

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

const logger = { namespace: () => logger, debug: () => {}, warn: () => {} };

// the spec needs the instance that kafkajs itself loads
const RequestQueueClass = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as new (
  options: object,
) => RequestQueue;

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
});
