import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type EmitterId, getStoredPositions, type StoredPosition, Unavailable } from '#contracts';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { StorePositions } from './store-positions.js';

/** In a topic with two partitions. */
const OF_PARTITION_0: EmitterId = 'dc_2';
const OF_PARTITION_1: EmitterId = 'dc_1';

describe('the positions of the store', () => {
  let stored: StoredPosition[];
  let messages: FakeMessages;
  let positions: StorePositions;

  beforeEach(async () => {
    jest.useFakeTimers();
    stored = [];
    messages = new FakeMessages().replyTo(getStoredPositions, () => stored);
    const module = await Test.createTestingModule({ providers: [StorePositions, { provide: Messages, useValue: messages }] }).compile();
    positions = module.get(StorePositions);
  });
  afterEach(() => void jest.useRealTimers());

  const store = (...offsets: number[]) => (stored = offsets.map((offset, partition) => ({ partition, offset, clock: offset })));
  /** The state of a wait so far. */
  const watch = (wait: Promise<void>) => {
    const state = { is: 'waiting' };
    wait.then(
      () => (state.is = 'reached'),
      (error: Error) => (state.is = error.name),
    );
    return state;
  };
  const never = new AbortController().signal;
  const seamAt = (...offsets: number[]) => new Map(offsets.map((offset, partition) => [partition, { offset, clock: offset }]));

  it('are reached when the store has processed all records below the seam, in every partition', async () => {
    store(5, 1);
    const wait = watch(positions.reached(seamAt(5, 2), OF_PARTITION_1, never));
    await jest.advanceTimersByTimeAsync(1000);
    expect(wait.is).toBe('waiting');
    store(5, 2);
    await jest.advanceTimersByTimeAsync(1000);
    expect(wait.is).toBe('reached');
  });

  it('are reached after two seconds without the partitions of other emitters', async () => {
    store(5, 1);
    const seam = seamAt(5, 2);
    const wait = watch(positions.reached(seam, OF_PARTITION_0, never));
    await jest.advanceTimersByTimeAsync(1500);
    expect(wait.is).toBe('waiting');
    await jest.advanceTimersByTimeAsync(1000);
    expect(wait.is).toBe('reached');
    const other = watch(positions.reached(seam, OF_PARTITION_1, never));
    await jest.advanceTimersByTimeAsync(10_000);
    expect(other.is).toBe('waiting');
  });

  it('are requested once for all clients that wait at the same time', async () => {
    store(5);
    await Promise.all([5, 4, 3].map((offset) => positions.reached(seamAt(offset), OF_PARTITION_1, never)));
    expect(messages.requests).toHaveLength(1);
  });

  it('are not reached again by a store that was restored to an earlier state', async () => {
    store(5);
    await positions.reached(seamAt(5), OF_PARTITION_1, never);
    store(2);
    const wait = watch(positions.reached(seamAt(5), OF_PARTITION_1, never));
    await jest.advanceTimersByTimeAsync(1000);
    expect(wait.is).toBe('waiting');
    store(5);
    await jest.advanceTimersByTimeAsync(1000);
    expect(wait.is).toBe('reached');
  });

  it.each([
    [
      'are reached by a store that reads the log after the one of the seam, at any offset',
      { offset: 1000, clock: 1000 },
      5,
      2000,
      'reached',
    ],
    ['are not reached by a store that still reads the log before that of the seam', { offset: 5, clock: 2000 }, 1000, 1000, 'waiting'],
    ['are reached in a log that is read from its beginning', { offset: 0, clock: 0 }, 1000, 1000, 'reached'],
    ['are not reached by a store that has some of several records with one clock', { offset: 7, clock: 2000 }, 6, 2000, 'waiting'],
  ])('%s', async (_, seam, offset, clock, expected) => {
    stored = [{ partition: 0, offset, clock }];
    const wait = watch(positions.reached(new Map([[0, seam]]), OF_PARTITION_1, never));
    await jest.advanceTimersByTimeAsync(10_000);
    expect(wait.is).toBe(expected);
  });

  it('are waited for no longer than a minute, because the seam may belong to a log that was lost', async () => {
    store(1);
    const wait = watch(positions.reached(seamAt(2), OF_PARTITION_1, never));
    await jest.advanceTimersByTimeAsync(59_000);
    expect(wait.is).toBe('waiting');
    await jest.advanceTimersByTimeAsync(2000);
    expect(wait.is).toBe('SluiceError');
  });

  it('are no longer requested when the client has disconnected', async () => {
    const gone = new AbortController();
    const wait = watch(positions.reached(seamAt(1), OF_PARTITION_1, gone.signal));
    await jest.advanceTimersByTimeAsync(100);
    gone.abort();
    await jest.advanceTimersByTimeAsync(1000);
    const requests = messages.requests.length;
    await jest.advanceTimersByTimeAsync(10_000);
    expect({ is: wait.is, requests: messages.requests.length }).toEqual({ is: 'AbortError', requests });
  });

  it('fail when the store does not reply, and are requested again for the next client', async () => {
    messages.replyTo(getStoredPositions, () => {
      throw new Unavailable('away');
    });
    await expect(positions.reached(seamAt(1), OF_PARTITION_1, never)).rejects.toMatchObject({ code: 'unavailable' });
    messages.replyTo(getStoredPositions, () => store(1));
    await positions.reached(seamAt(1), OF_PARTITION_1, never);
  });
});
