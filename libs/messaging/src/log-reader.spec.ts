import { setTimeout as sleep } from 'node:timers/promises';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ConsumerRunConfig, EachBatchPayload } from 'kafkajs';
import type { KafkaClient } from './kafka.js';
import { LogReader, SpareTime } from './log-reader.js';

describe('a log that cannot be read in time', () => {
  const consumer = { events: {}, on: () => {}, connect: () => sleep(30), subscribe: () => {}, run: () => {}, disconnect: async () => {} };
  const kafka = { consumer: () => consumer, withAdmin: async () => {} } as unknown as KafkaClient;
  const reader = new LogReader(kafka, { warn: () => {} } as never);
  const unhandled = jest.fn();
  beforeEach(() => void process.on('unhandledRejection', unhandled));
  afterEach(() => void process.off('unhandledRejection', unhandled));

  it.each([
    ['connecting takes longer', 1],
    ['no time is left', -1],
  ])('is an error of the caller alone if %s', async (_, withinMs) => {
    const range = new Map([[0, { from: 0, to: 1 }]]);
    await expect(reader.read('routing', 'events', range, () => true, { withinMs })).rejects.toThrow('could not be read in time');
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe('a log that takes longer to read than the time limit', () => {
  const batchOf = (offset: number) => {
    const message = { offset: `${offset}`, timestamp: '0', attributes: 0, key: null, value: null, headers: {} };
    return { partition: 0, messages: [message], rawMessages: [message], lastOffset: () => `${offset}` };
  };
  /** Its batches come after these times, in ms. */
  const logOf = (pauses: number[]) => {
    const consumer = {
      ...{ events: {}, on: () => {}, connect: async () => {}, subscribe: async () => {}, disconnect: async () => {}, pause: () => {} },
      run: async ({ eachBatch }: ConsumerRunConfig) => {
        for (const [offset, pause] of pauses.entries()) {
          await sleep(pause);
          await eachBatch!({ batch: batchOf(offset), heartbeat: async () => {} } as unknown as EachBatchPayload);
        }
      },
    };
    const reader = new LogReader(
      { consumer: () => consumer, withAdmin: async () => {} } as unknown as KafkaClient,
      { warn: () => {} } as never,
    );
    return (limits: 'all' | 'batch') =>
      reader.read('operator', 'x', new Map([[0, { from: 0, to: pauses.length }]]), () => true, { withinMs: 3000, limits });
  };

  it('is read to the end if the time limit is for each batch', async () => {
    // ten times shorter than the limit, because a busy machine may add to them
    const read = logOf(Array.from({ length: 11 }, () => 300));
    await Promise.all([read('batch'), expect(read('all')).rejects.toThrow('could not be read in time')]);
  });

  it('is an error if a batch does not come', async () => {
    await expect(logOf([0, 4000])('batch')).rejects.toThrow('could not be read in time');
  });
});

it('the records of a range have at least the clock with which it begins', async () => {
  const messages = [10, 30, 20].map((timestamp, offset) => ({
    offset: `${offset}`,
    timestamp: `${timestamp}`,
    attributes: 0,
    key: null,
    value: null,
    headers: {},
  }));
  const batch = { partition: 0, messages, rawMessages: messages, lastOffset: () => '2' };
  const consumer = {
    ...{ events: {}, on: () => {}, connect: async () => {}, subscribe: async () => {}, disconnect: async () => {}, pause: () => {} },
    run: async ({ eachBatch }: ConsumerRunConfig) => void eachBatch!({ batch, heartbeat: async () => {} } as unknown as EachBatchPayload),
  };
  const kafka = { consumer: () => consumer, withAdmin: async () => {} } as unknown as KafkaClient;
  const reader = new LogReader(kafka, { warn: () => {} } as never);
  const clocks: number[] = [];
  await reader.read('routing', 'events', new Map([[0, { from: 0, to: 3, clock: 25 }]]), (_, records) => {
    clocks.push(...records.map(({ clock }) => clock));
    return true;
  });
  expect(clocks).toEqual([25, 30, 30]);
});

it('reads on demand only the partitions of its ranges, and continues with the first record that still exists if retention deletes some', async () => {
  const joined = new EventEmitter();
  const calls: unknown[] = [];
  const consumer = {
    ...{ events: { GROUP_JOIN: 'join' }, on: joined.on.bind(joined), connect: async () => {}, disconnect: async () => {} },
    // kafkajs continues there when the broker does not have the next offset any more
    subscribe: async ({ fromBeginning }: { fromBeginning: boolean }) => void calls.push({ fromBeginning }),
    seek: ({ partition, offset }: { partition: number; offset: string }) => void calls.push({ partition, offset }),
    pause: ([{ partitions }]: [{ partitions: number[] }]) => void calls.push({ paused: partitions }),
    run: async ({ eachBatch }: ConsumerRunConfig) => {
      joined.emit('join', { payload: { memberAssignment: { events: [0, 1] } } });
      const batch = { partition: 1, messages: [], rawMessages: [{}], lastOffset: () => '6' };
      void eachBatch!({ batch, heartbeat: async () => {} } as unknown as EachBatchPayload);
    },
  };
  const kafka = { consumer: () => consumer, withAdmin: async () => {} } as unknown as KafkaClient;
  await new LogReader(kafka, { warn: () => {} } as never).read('routing', 'events', new Map([[1, { from: 5, to: 7 }]]), () => true);
  expect(calls).toEqual([{ fromBeginning: true }, { paused: [0] }, { partition: 1, offset: '5' }, { paused: [1] }]);
});

it('ends when retention has deleted the rest of a range, even if no record follows', async () => {
  const joined = new EventEmitter();
  const fetched: number[] = [];
  const consumer = {
    ...{ events: { GROUP_JOIN: 'join' }, on: joined.on.bind(joined), connect: async () => {}, disconnect: async () => {} },
    ...{ subscribe: async () => {}, seek: () => {}, pause: () => {} },
    run: async ({ eachBatch }: ConsumerRunConfig) => {
      for (const fetchedOffset of [6, 7]) {
        fetched.push(fetchedOffset);
        const batch = {
          partition: 0,
          messages: [],
          rawMessages: [],
          messagesWithinOffset: [],
          fetchedOffset: `${fetchedOffset}`,
          lastOffset: () => '6',
        };
        await eachBatch!({ batch, heartbeat: async () => {} } as unknown as EachBatchPayload);
      }
    },
  };
  const kafka = { consumer: () => consumer, withAdmin: async () => {} } as unknown as KafkaClient;
  const taken: unknown[] = [];
  const reader = new LogReader(kafka, { warn: () => {} } as never);
  const range = new Map([[0, { from: 5, to: 7 }]]);
  await reader.read('routing', 'events', range, (...records) => taken.push(records) > 0, { withinMs: 1000 });
  expect([fetched, taken]).toEqual([[6, 7], []]);
});

describe('a step of work in spare time', () => {
  /** The share of the time in which the event loop does other work. */
  let busy: number;
  let spare: SpareTime;
  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    let [at, active, idle] = [performance.now(), 0, 0];
    spare = new SpareTime(() => {
      const elapsed = performance.now() - at;
      [at, active, idle] = [at + elapsed, active + elapsed * busy, idle + elapsed * (1 - busy)];
      return { active, idle };
    });
  });
  afterEach(() => void jest.useRealTimers());

  /** How long a step waits, in ms. */
  async function waited(): Promise<number> {
    const start = performance.now();
    const turn = spare.next().then(() => performance.now() - start);
    await jest.advanceTimersByTimeAsync(1000);
    return turn;
  }

  it.each([
    ['for a moment if there is nothing else to do', 0, 5],
    ['for a moment while the event loop rests half of the time', 0.5, 5],
    ['for a tenth of a second while the event loop is busy', 0.9, 100],
  ])('waits %s', async (_, share, expected) => {
    busy = share;
    expect(await waited()).toBe(expected);
  });

  it('waits until the event loop has rested for as long as it was busy', async () => {
    busy = 1;
    const [start, turn] = [performance.now(), spare.next().then(() => performance.now())];
    await jest.advanceTimersByTimeAsync(20);
    busy = 0;
    await jest.advanceTimersByTimeAsync(1000);
    expect((await turn) - start).toBe(40);
  });

  it('waits for the steps that came before it', async () => {
    busy = 0;
    const begun: number[] = [];
    for (const step of [1, 2, 3]) void spare.next().then(() => begun.push(step));
    await jest.advanceTimersByTimeAsync(5);
    expect(begun).toEqual([1]);
    await jest.advanceTimersByTimeAsync(10);
    expect(begun).toEqual([1, 2, 3]);
  });
});
