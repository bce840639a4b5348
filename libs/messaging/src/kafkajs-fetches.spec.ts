import { describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import './kafkajs-fixes.js';

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
const { prototype: runner } = require('kafkajs/src/consumer/runner.js') as { prototype: { stop(): Promise<void> } };

/** A member of a group whose broker never responds. */
const member = (changes: Partial<Group> = {}): Group =>
  Object.assign(Object.create(group), {
    ...{ maxWaitTime: 4000, leaderId: 'a', memberId: 'a', members: ['a'], subscriptionState: { paused: () => [] } },
    cluster: { refreshMetadataIfNecessary: () => new Promise(() => {}) },
    ...changes,
  }) as Group;

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
