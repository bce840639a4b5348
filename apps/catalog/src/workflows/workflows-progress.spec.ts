import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import type { KafkaClient } from '#messaging';
import { createLog } from '#observability';
import { WorkflowsProgress } from './workflows-progress.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** @param committed the offsets of two partitions that the group has committed; the topic has 5 records in the first one, and none in the other */
function outcomeOf(committed: () => Promise<[string, string]>): { outcome?: string } {
  const admin = {
    connect: async () => {},
    disconnect: async () => {},
    fetchTopicOffsets: async () => ['5', '0'].map((high, partition) => ({ partition, low: '0', high, offset: high })),
    fetchOffsets: async () => [
      { topic: 'workflows', partitions: (await committed()).map((offset, partition) => ({ partition, offset, metadata: null })) },
    ],
  } as unknown as Admin;
  const progress = new WorkflowsProgress({ admin: () => admin } as unknown as KafkaClient, createLog('test', 'silent'));
  const state: { outcome?: string } = {};
  progress.reachEnd(Date.now() + 4000).then(
    () => (state.outcome = 'reached'),
    (error: { code?: string }) => (state.outcome = error.code),
  );
  return state;
}

it('waits until the group has committed all records, and not for partitions without any', async () => {
  let offset = '3';
  const state = outcomeOf(async () => [offset, '-1']);
  await jest.advanceTimersByTimeAsync(1000);
  expect(state).toEqual({});
  offset = '5';
  await jest.advanceTimersByTimeAsync(300);
  expect(state).toEqual({ outcome: 'reached' });
});

it.each<[string, () => Promise<[string, string]>]>([
  ['does not exist', () => Promise.reject(new Error('no coordinator'))],
  ['hangs', () => new Promise(() => {})],
])('fails in time while the coordinator of the group %s', async (_, committed) => {
  const state = outcomeOf(committed);
  await jest.advanceTimersByTimeAsync(4000);
  expect(state).toEqual({ outcome: 'unavailable' });
});
