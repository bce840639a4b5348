import { describe, expect, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

interface RequestQueue {
  pending: unknown[];
  checkPendingRequests(): void;
  maybeThrottle(ms: number): void;
  push(request: { entry: { correlationId: number }; expectResponse: boolean; sendRequest(): void }): void;
  destroy(): void;
}

const logger = { namespace: () => logger, debug: () => {}, warn: () => {} };

// the spec needs the instance that kafkajs itself loads
const RequestQueueClass = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as new (
  options: object,
) => RequestQueue;

const newQueue = () =>
  new RequestQueueClass({
    maxInFlightRequests: null,
    requestTimeout: 1000,
    enforceRequestTimeout: false,
    clientId: 'c',
    broker: 'b',
    logger,
  });

describe('the request queue of a kafkajs connection', () => {
  it('sets no timer while no request waits', () => {
    jest.useFakeTimers();
    try {
      newQueue().checkPendingRequests();
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('sends a request that has to wait as soon as the broker allows it', () => {
    jest.useFakeTimers();
    try {
      const queue = newQueue();
      const sent: number[] = [];
      queue.maybeThrottle(500);
      queue.push({ entry: { correlationId: 1 }, expectResponse: true, sendRequest: () => sent.push(1) });
      expect([sent, queue.pending.length]).toEqual([[], 1]);
      jest.advanceTimersByTime(600);
      expect([sent, queue.pending.length]).toEqual([[1], 0]);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
