import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { type DeletedRange, eventPlace } from '#events';
import type { Consumers } from '#messaging';
import { createLog } from '#observability';
import type { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import type { PostponedEvents } from './postponed-events.js';
import { Withdrawals } from './withdrawals.js';

const [PARTITION, OFFSET] = [3, 100];
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
    withdrawn: [] as string[],
    outcome: 'in progress',
    released: false,
  };
  const consumers = {
    positionsOf: () => [
      { topic: 'events', partition: PARTITION + 1, offset: 1_000_000 },
      ...(state.isOurs ? [{ topic: 'events', partition: PARTITION, offset: state.offset }] : []),
    ],
    isStopping: () => state.isStopping,
  } as unknown as Consumers;
  const parked = { withdraw: async () => state.withdrawn.push(...state.waiting.splice(0)) } as unknown as ParkedDeliveriesRepository;
  const postponed = { withdraw: async () => 0, isInProgress: () => state.isPostponedInProgress } as unknown as PostponedEvents;
  const { run } = new Withdrawals(createLog('test', 'silent'), postponed, parked, consumers).task(RANGE);
  run(() => (state.released = true)).then(
    () => (state.outcome = 'done'),
    () => (state.outcome = 'left'),
  );
  const later = async () => {
    for (let turn = 0; turn < 100; turn++) await jest.advanceTimersByTimeAsync(100);
  };
  return { state, later };
}

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
