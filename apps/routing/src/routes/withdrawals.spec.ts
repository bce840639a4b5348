import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { EmitterId } from '#contracts';
import { type DeletedRange, eventPlace, logPlaceOf } from '#events';
import { type Consumers, Lanes } from '#messaging';
import { createLog } from '#observability';
import type { Dispatcher } from '../deliveries/direct/dispatcher.js';
import type { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { tenantsOf } from './event-tasks.js';
import type { PostponedEvents } from './postponed-events.js';
import type { PostponedEventsRepository } from './postponed-events.repository.js';
import type { UnknownEventsRepository } from './unknown-events.repository.js';
import { Withdrawals } from './withdrawals.js';

const [PARTITION, OFFSET] = [3, 100];
const POSTPONED = { withdraw: async () => 0 } as unknown as PostponedEventsRepository;
const UNKNOWN = { withdraw: async () => 0 } as unknown as UnknownEventsRepository;
const RANGE: DeletedRange = {
  kind: 'delete',
  place: eventPlace({ clock: 1, partition: PARTITION, offset: OFFSET }),
  ...{ emitterId: 'dc_1', start: null, end: null, stream: null },
};

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

/** Withdraws the deliveries of deleted events while the events before the deletion are done up to an offset. */
function withdrawing(offset: number, { isPostponedInProgress = false } = {}) {
  const state = {
    offset,
    isOurs: true,
    isStopping: false,
    isPostponedInProgress,
    /** Deliveries that are parked now. */
    waiting: ['parked before'],
    /** Deliveries that wait for their first attempt. */
    inMemory: [] as string[],
    withdrawn: [] as string[],
    outcome: 'in progress',
    released: false,
  };
  const consumers = {
    positionsOf: () => [
      { topic: 'events', partition: PARTITION + 1, offset: 1_000_000 },
      ...(state.isOurs ? [{ topic: 'events', partition: PARTITION, offset: state.offset }] : []),
    ],
    undoneOf: () => [state.offset],
    isStopping: () => state.isStopping,
  } as unknown as Consumers;
  const parked = { withdraw: async () => state.withdrawn.push(...state.waiting.splice(0)) } as unknown as ParkedDeliveriesRepository;
  const postponed = { isInProgress: () => state.isPostponedInProgress } as unknown as PostponedEvents;
  const dispatcher = { withdraw: () => state.withdrawn.push(...state.inMemory.splice(0)) } as unknown as Dispatcher;
  const { run } = new Withdrawals(createLog('test', 'silent'), postponed, POSTPONED, UNKNOWN, parked, dispatcher, consumers).task(RANGE);
  run(() => (state.released = true)).then(
    () => (state.outcome = 'done'),
    () => (state.outcome = 'left'),
  );
  const later = async () => {
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(100);
  };
  return { state, later };
}

it('a deletion ends the events of an unknown emitter before postponed ones, which they may become', async () => {
  const withdrawn: string[] = [];
  const withdraw = (table: string) => async () => withdrawn.push(table);
  const none = { withdraw: async () => 0 } as never;
  const consumers = { positionsOf: () => [], undoneOf: () => [] } as unknown as Consumers;
  const tables = [{ withdraw: withdraw('postponed_event') }, { withdraw: withdraw('unknown_event') }] as [never, never];
  await new Withdrawals(createLog('test', 'silent'), none, ...tables, none, none, consumers).task(RANGE).run(() => {});
  expect(withdrawn).toEqual(['unknown_event', 'postponed_event']);
});

it('a deletion is done at once if every event before it has been delivered or parked', async () => {
  const { state } = withdrawing(OFFSET);
  await jest.advanceTimersByTimeAsync(0);
  expect(state).toMatchObject({ outcome: 'done', withdrawn: ['parked before'], released: false });
});

it('a deletion withdraws a delivery whose first attempt fails later, and does not hold up other tasks meanwhile', async () => {
  const { state, later } = withdrawing(OFFSET - 1);
  await jest.advanceTimersByTimeAsync(0);
  expect(state).toMatchObject({ outcome: 'in progress', withdrawn: ['parked before'], released: true });
  state.waiting.push('parked after');
  await later();
  expect(state).toMatchObject({ outcome: 'in progress', withdrawn: ['parked before', 'parked after'] });
  state.waiting.push('parked last');
  state.offset = OFFSET;
  await later();
  expect(state).toMatchObject({ outcome: 'done', withdrawn: ['parked before', 'parked after', 'parked last'] });
});

it('a deletion withdraws the deliveries that wait for their first attempt', async () => {
  const { state, later } = withdrawing(OFFSET - 1);
  state.inMemory.push('waiting');
  await later();
  expect(state.withdrawn).toContain('waiting');
});

it('a deletion waits for postponed events that are in progress', async () => {
  const { state, later } = withdrawing(OFFSET, { isPostponedInProgress: true });
  await later();
  expect(state.outcome).toBe('in progress');
  state.isPostponedInProgress = false;
  await later();
  expect(state.outcome).toBe('done');
});

it.each([
  ['another replica has its partition', (state: { isOurs: boolean }) => (state.isOurs = false)],
  ['its partition is read again from an earlier position', (state: { offset: number }) => (state.offset = 0)],
])('a deletion ends if %s', async (_, change) => {
  const { state, later } = withdrawing(OFFSET - 1);
  await later();
  expect(state.outcome).toBe('in progress');
  change(state);
  await later();
  expect(state.outcome).toBe('done');
});

it('a deletion is left to the next owner of its partition if routing stops before the events are done', async () => {
  const { state, later } = withdrawing(OFFSET - 1);
  await later();
  state.isStopping = true;
  await later();
  expect(state.outcome).toBe('left');
});

describe('several deletions of a partition', () => {
  const deletion = (offset: number, emitterId: EmitterId = 'dc_1'): DeletedRange => ({
    ...RANGE,
    emitterId,
    place: eventPlace({ clock: 1, partition: PARTITION, offset }),
  });

  /** Begins them in their lanes. `done`: the offsets of other records that are done, from 99 on. `hidden`: those without a record. */
  function deleting(deletions: DeletedRange[], done: number[] = [], hidden: number[] = []) {
    const looks: number[][] = [];
    const ended: number[] = [];
    const offsetOf = ({ place }: DeletedRange) => logPlaceOf(place).offset;
    const offsets = Array.from({ length: 10 }, (_, index) => 99 + index);
    const undone = () => offsets.filter((offset) => ![...done, ...ended].includes(offset));
    const consumers = {
      positionsOf: () => [{ topic: 'events', partition: PARTITION, offset: undone()[0] }],
      undoneOf: () => undone().filter((offset) => !hidden.includes(offset)),
      isStopping: () => false,
    } as unknown as Consumers;
    const parked = {
      withdraw: async (ranges: DeletedRange[]) => {
        looks.push(ranges.map(offsetOf));
        return 0;
      },
    };
    const postponed = { isInProgress: () => false } as unknown as PostponedEvents;
    const dispatcher = { withdraw: () => 0 } as never;
    const withdrawals = new Withdrawals(createLog('test', 'silent'), postponed, POSTPONED, UNKNOWN, parked as never, dispatcher, consumers);
    const lanes = new Lanes({ concurrency: 10 });
    const tasks = deletions.map((range) => withdrawals.task(range, 'u_1'));
    for (const [index, task] of tasks.entries()) lanes.push(task, () => ended.push(offsetOf(deletions[index]!)));
    return { looks, ended, tasks, done, later: () => jest.advanceTimersByTimeAsync(5000) };
  }

  it('do not wait for each other, but for the event before them', async () => {
    const { looks, ended, done, later } = deleting([deletion(100), deletion(101, 'dc_2'), deletion(102, 'dc_3')]);
    await later();
    expect(ended).toEqual([]);
    looks.length = 0;
    done.push(99);
    await later();
    expect(ended.toSorted()).toEqual([100, 101, 102]);
    expect(looks).toHaveLength(3);
  });

  it('deletions wait for an event that is between them in the partition', async () => {
    const { ended, done, later } = deleting([deletion(100), deletion(101, 'dc_2'), deletion(103, 'dc_3')], [99]);
    await later();
    expect(ended).toEqual([100, 101]);
    done.push(102);
    await later();
    expect(ended).toEqual([100, 101, 103]);
  });

  it('wait for an event before them, also if later ones are done', async () => {
    const { ended, done, later } = deleting([deletion(100), deletion(103, 'dc_3')], [101, 102]);
    await later();
    expect(ended).toEqual([]);
    done.push(99);
    await later();
    expect(ended).toEqual([100, 103]);
  });

  it('do not wait for an offset without a visible record, such as the marker of a transaction', async () => {
    const { ended, later } = deleting([deletion(101), deletion(103, 'dc_3')], [99], [100, 102]);
    await later();
    expect(ended).toEqual([101, 103]);
  });

  it('share each look if they have the same emitter', async () => {
    const { looks, ended, done, later } = deleting([deletion(100), deletion(101), deletion(102)]);
    await jest.advanceTimersByTimeAsync(0);
    expect(looks).toEqual([[100, 101, 102]]);
    done.push(99);
    await later();
    expect([looks.length, ended]).toEqual([2, [100, 101, 102]]);
  });

  it('are left to another replica that has got their partition', async () => {
    const { looks, tasks, later } = deleting([deletion(100), deletion(101)]);
    await jest.advanceTimersByTimeAsync(0);
    tasks[0]!.drop!();
    looks.length = 0;
    await later();
    expect(looks[0]).toEqual([101]);
  });

  it('are tasks of the account of their emitter', () => {
    const { tasks } = deleting([deletion(100)]);
    expect(tenantsOf('u_1')).toContain(tasks[0]!.tenant);
  });
});
