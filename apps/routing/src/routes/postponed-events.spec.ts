import { describe, expect, it } from '@jest/globals';
import type { EmitterId, ListenerId, UserId } from '#contracts';
import { type EmittedEvent, eventPlace } from '#events';
import type { AccountPace } from '#fairness';
import type { Consumers } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import type { ReceiverStates } from '../deliveries/receivers/receiver-states.js';
import { CONFIG } from '../deliveries/simulation/replica-for-tests.js';
import type { EventTasks } from './event-tasks.js';
import { MAX_OUTSTANDING } from './events-group.js';
import type { Match, MatchRepository } from './match.repository.js';
import { exceedsShare, PostponedEvents, type Situation } from './postponed-events.js';
import type { PostponedEventsRepository } from './postponed-events.repository.js';

const alone: Situation = { listeners: 200, outstanding: { account: 0, all: 0 }, hasOthers: false, ageMs: 0 };
const shared = { ...alone, hasOthers: true };

describe('an event is postponed', () => {
  it.each<[string, boolean, Situation]>([
    ['if its account has its share already', true, { ...shared, outstanding: { account: 900, all: 900 } }],
    ['if it has more listeners than the share', true, { ...shared, listeners: 1001 }],
    ['if its account has little, but little is left for others', true, { ...shared, outstanding: { account: 0, all: 1500 } }],
    ['if it is late, because others may wait behind it', true, { ...alone, outstanding: { account: 900, all: 900 }, ageMs: 4000 }],
    ['unless its account has less than its share', false, { ...shared, outstanding: { account: 700, all: 1000 } }],
    ['unless it has few listeners and little is left', false, { ...shared, listeners: 50, outstanding: { account: 0, all: 2900 } }],
    ['unless it has hardly any listeners', false, { ...shared, listeners: 3, outstanding: { account: 2000, all: 2900 } }],
    ['unless its account is alone and its events are read soon', false, { ...alone, outstanding: { account: 2900, all: 2900 } }],
  ])('%s', (_, expected, situation) => {
    expect(exceedsShare(situation)).toBe(expected);
  });

  it('an event is postponed behind an earlier one of its emitter, but not behind one of another emitter', () => {
    const outstanding: Record<string, number> = { u_1: 700, 'triggers u_1': 200, u_2: 0 };
    const consumers = {
      load: () => 900 / MAX_OUTSTANDING,
      outstandingOf: (_: string, tenant: string) => outstanding[tenant] ?? 0,
    } as unknown as Consumers;
    const receivers = { hasOthersThan: () => true } as unknown as ReceiverStates;
    const log = createLog('test', 'silent');
    const spent: [UserId, number][] = [];
    const [none, box] = [undefined as unknown, new SecretBox([Buffer.alloc(32)])];
    const postponed = new PostponedEvents(
      log,
      none as PostponedEventsRepository,
      none as MatchRepository,
      none as EventTasks,
      receivers,
      consumers,
      CONFIG,
      box,
      { spend: (id, units) => void spent.push([id, Math.round(units)]) } as AccountPace,
    );
    const { isPostponed, include, begin } = postponed.decider();
    const decide = (emitterId: EmitterId, ownerId: UserId, listenerCount: number, isWaiting = false): boolean => {
      const event = { emitterId, place: { ms: Date.now(), seq: 1 } } as EmittedEvent;
      const listeners = Array.from({ length: listenerCount }, (_, index) => ({ id: `wh_${index}` as ListenerId, version: 1 }));
      const match = { ownerId, postponed: isWaiting, listeners };
      const waits = isPostponed(event, match);
      include(event, match, waits);
      return waits;
    };
    expect(decide('dc_1', 'u_1', 50)).toBe(false);
    expect(decide('dc_1', 'u_1', 200)).toBe(true);
    expect(decide('dc_1', 'u_1', 1)).toBe(true);
    expect(decide('dc_2', 'u_1', 1)).toBe(false);
    // what was planned before in the same batch counts
    expect(decide('dc_3', 'u_2', 600)).toBe(false);
    expect(decide('dc_4', 'u_2', 600)).toBe(true);
    expect(decide('dc_5', 'u_2', 1, true)).toBe(true);
    // what is not postponed counts for the pace of its account
    begin();
    expect(spent).toEqual([
      ['u_1', 5],
      ['u_2', 60],
    ]);
  });
});

it('a postponed event is in progress until its tasks have ended and it is removed', async () => {
  const record = {
    partition: 3,
    offset: 7,
    clock: 1,
    key: 'dc_1',
    value: Buffer.from('1'),
    header: () => undefined,
    headerNames: () => [],
  };
  const waiting = [record];
  const ended = Promise.withResolvers<boolean>();
  const removed = Promise.withResolvers<void>();
  const postponed = new PostponedEvents(
    createLog('test', 'silent'),
    {
      accounts: async () => ['u_1'],
      next: async () => waiting.splice(0),
      has: async () => false,
      remove: async () => removed.resolve(),
    } as unknown as PostponedEventsRepository,
    {
      match: async () => ({ matches: [{ ownerId: 'u_1', postponed: true, listeners: [] }] }),
      lookedUp: (_: EmittedEvent, match: Match) => match,
    } as unknown as MatchRepository,
    { of: () => [{ lane: 'a', run: async () => {} }] } as unknown as EventTasks,
    {} as ReceiverStates,
    {
      positionsOf: () => [{ partition: 3, clock: 2, offset: 8 }],
      isStopping: () => false,
      pushFor: () => ended.promise,
      load: () => 0,
      outstandingOf: () => 0,
    } as unknown as Consumers,
    CONFIG,
    new SecretBox([Buffer.alloc(32)]),
    {} as AccountPace,
  );
  await postponed.look();
  await new Promise((resolve) => setTimeout(resolve, 10));
  const isInProgress = (emitterId: EmitterId, offset: number) =>
    postponed.isInProgress(emitterId, eventPlace({ clock: 1, partition: 3, offset }));
  expect([isInProgress('dc_1', 8), isInProgress('dc_1', 7), isInProgress('dc_2', 8)]).toEqual([true, false, false]);
  ended.resolve(true);
  await removed.promise;
  await new Promise(setImmediate);
  expect(isInProgress('dc_1', 8)).toBe(false);
});
