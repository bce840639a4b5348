import { describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import type { EachBatchHandler } from 'kafkajs';
import { withEmptyBatches } from './kafkajs-fixes.js';

interface Group {
  maxWaitTime: number;
  members: unknown[];
  leaderId: string;
  memberId: string;
  subscriptionState: { paused(): unknown[] };
  fetch(nodeId: number): Promise<unknown[]>;
}

const require = createRequire(import.meta.url);
const { prototype: group } = require('kafkajs/src/consumer/consumerGroup.js') as { prototype: Group };
const { prototype: runner } = require('kafkajs/src/consumer/runner.js') as {
  prototype: { stop(): Promise<void>; handleBatch(batch: object): Promise<void> };
};

/** A member of a group whose broker never responds. */
const member = (changes: Partial<Group> = {}): Group =>
  Object.assign(Object.create(group), {
    ...{ maxWaitTime: 4000, leaderId: 'a', memberId: 'a', members: ['a'], subscriptionState: { paused: () => [] } },
    cluster: { refreshMetadataIfNecessary: () => new Promise(() => {}) },
    ...changes,
  }) as Group;

describe('a batch without visible records', () => {
  const Batch = require('kafkajs/src/consumer/batch.js') as new (topic: string, offset: string, data: object) => object;
  const message = (offset: number, isControlRecord: boolean) => ({ offset: String(offset), isControlRecord });
  /** The sizes of the batches that the handler of a consumer gets, which resolves offsets itself, and the offsets behind which it continues. */
  async function handled(messages: object[], wrap: (handler: EachBatchHandler) => EachBatchHandler) {
    const [calls, resolved]: [number[], string[]] = [[], []];
    const one = Object.assign(Object.create(runner) as typeof runner, {
      ...{ running: true, eachBatchAutoResolve: true, heartbeat: async () => {}, instrumentationEmitter: { emit: () => {} } },
      ...{ autoCommitOffsets: async () => {}, autoCommitOffsetsIfNecessary: async () => {} },
      consumerGroup: { resolveOffset: ({ offset }: { offset: string }) => void resolved.push(offset), hasSeekOffset: () => false },
      eachBatch: wrap(async ({ batch }) => void calls.push(batch.messages.length)),
    });
    await one.handleBatch(new Batch('t', '10', { partition: 0, highWatermark: '100', abortedTransactions: [], messages }));
    return { calls, resolved };
  }

  it('reaches the handler that wants it, and the consumer continues behind hidden records, but not behind records that were not fetched', async () => {
    expect(await handled([], withEmptyBatches)).toEqual({ calls: [0], resolved: [] });
    expect(await handled([message(10, true), message(11, true)], withEmptyBatches)).toEqual({ calls: [0], resolved: ['11'] });
    expect(await handled([message(10, false)], withEmptyBatches)).toEqual({ calls: [1], resolved: ['10'] });
    expect(await handled([message(10, true)], (handler) => handler)).toEqual({ calls: [], resolved: ['10'] });
  });
});

describe('a fetch of a kafkajs consumer', () => {
  it.each([
    ['as long as configured if it is alone', {}, 4000],
    ['a second at most with other members', { members: ['a', 'b'] }, 1000],
    ['a second at most if another member leads the group', { leaderId: 'b', members: [] }, 1000],
    ['a second at most while it is paused', { subscriptionState: { paused: () => ['t'] } }, 1000],
    ['not longer than configured', { maxWaitTime: 200, members: ['a', 'b'] }, 200],
  ])('waits for data %s', (_, changes, expected) => {
    const one = member(changes);
    void one.fetch(1);
    expect(one.maxWaitTime).toBe(expected);
  });

  it('waits as long as configured again when the others have left', () => {
    const one = member({ members: ['a', 'b'] });
    void one.fetch(1);
    one.members = ['a'];
    void one.fetch(1);
    expect(one.maxWaitTime).toBe(4000);
  });

  it('ends when the consumer stops', async () => {
    const one = member();
    const fetched = [one.fetch(1), one.fetch(2)];
    await runner.stop.call(Object.assign(Object.create(runner), { running: false, consumerGroup: one }));
    expect(await Promise.all(fetched)).toEqual([[], []]);
  });
});
