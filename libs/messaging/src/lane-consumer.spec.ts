import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { ConsumerRunConfig, EachBatchPayload } from 'kafkajs';
import { createLog, metrics } from '#observability';
import type { KafkaClient } from './kafka.js';
import { consumerStates } from './consumer-life.js';
import { LaneConsumer } from './lane-consumer.js';
import { NO_RESTORES } from './restores.js';

const TOPIC = 'events';
/** Unlike every other pause. */
const COMMIT_EVERY_MS = 11;
const EVENTS = ['GROUP_JOIN', 'REBALANCING', 'FETCH_START', 'FETCH', 'HEARTBEAT', 'STOP', 'CRASH'];

const eventually = async (expected: () => void | Promise<void>): Promise<void> => {
  for (let tries = 0; ; tries++) {
    try {
      return await expected();
    } catch (error) {
      if (tries === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
};

/** A consumer in a group that accepts or refuses its commits. Its tasks run one at a time, until the test ends them. */
async function consuming({
  maxOutstanding = 100,
  partitions = [0],
  restores = NO_RESTORES,
  drainMs = 100,
  handOver = async () => {},
  beforeFetch = (_: LaneConsumer) => {},
} = {}) {
  const emitter = new EventEmitter();
  const committed: string[] = [];
  const group = { refuses: undefined as string | undefined, hangs: undefined as Promise<void> | undefined, commits: 0 };
  const begun: number[] = [];
  const heartbeats = { sent: 0 };
  const ends: (() => void)[] = [];
  /** Called for the records that are planned. */
  const planned = { with: (_: number[]): void | Promise<void> => {}, most: Infinity };
  let run: ConsumerRunConfig = {};
  /** Whether kafkajs fetches nothing from partition 0. */
  let isPaused = false;
  /** Whether another offset has been requested since the last fetch. */
  let isStale = false;
  const consumer = {
    events: Object.fromEntries(EVENTS.map((name) => [name, name])),
    on: (name: string, listener: () => void) => emitter.on(name, listener),
    connect: async () => {},
    subscribe: async () => {},
    run: async (config: ConsumerRunConfig) => {
      beforeFetch(lanes);
      run = config;
    },
    pause: () => void (isPaused = true),
    seek: () => void (isStale = true),
    disconnect: async () => {},
    commitOffsets: async ([progress]: { offset: string }[]) => {
      group.commits += 1;
      committed.push(progress!.offset);
      await group.hangs;
      if (group.refuses) throw Object.assign(new Error('refused'), { type: group.refuses });
    },
  };
  const admin = {
    fetchOffsets: async () => [{ topic: TOPIC, partitions: partitions.map((partition) => ({ partition, offset: '0', metadata: null })) }],
  };
  const kafka = { watchedConsumer: () => consumer, drainMs, withAdmin: async (work: (given: unknown) => unknown) => work(admin) };
  const lanes = new LaneConsumer(kafka as unknown as KafkaClient, createLog('test', 'silent'), {
    group: 'test.group',
    topics: [TOPIC],
    commitEveryMs: COMMIT_EVERY_MS,
    concurrency: 1,
    maxOutstanding,
    restores,
    handOver,
    plan: async (records) => {
      await planned.with(records.map(({ offset }) => offset));
      return records.slice(0, planned.most).map(({ offset }) => [
        {
          lane: 'one',
          run: () => {
            begun.push(offset);
            return new Promise<void>((resolve) => ends.push(resolve));
          },
        },
      ]);
    },
  });
  await lanes.start();
  const join = (given = partitions) => emitter.emit('GROUP_JOIN', { payload: { memberAssignment: { [TOPIC]: given } } });
  join();
  const fetch = async (...offsets: number[]) => {
    isStale = false;
    const messages = offsets.map((offset) => ({
      ...{ key: null, value: null, offset: String(offset), timestamp: '1', attributes: 0, headers: {} },
    }));
    const [first = 0, last = first] = [offsets[0], offsets.at(-1)];
    const batch = {
      ...{
        topic: TOPIC,
        partition: 0,
        messages,
        rawMessages: messages,
        messagesWithinOffset: messages,
        isEmpty: () => messages.length === 0,
        offsetLag: () => '0',
      },
      ...{ fetchedOffset: String(first), lastOffset: () => String(last), highWatermark: String(last + 1) },
    };
    const resolved: string[] = [];
    await run.eachBatch?.({
      ...{ batch, heartbeat: async () => void (heartbeats.sent += 1), isRunning: () => true, isStale: () => isStale },
      resolveOffset: (offset: string) => void resolved.push(offset),
      pause: () => {
        isPaused = true;
        return () => void (isPaused = false);
      },
    } as unknown as EachBatchPayload);
    return resolved;
  };
  /** Fetches records, and resolves when their plan, which waits, has begun. The returned function ends the plan, and resolves when they are taken. */
  const beginPlan = async (...offsets: number[]) => {
    const [begunToPlan, planning] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    planned.with = () => {
      begunToPlan.resolve();
      return planning.promise;
    };
    const fetched = fetch(...offsets);
    await begunToPlan.promise;
    return async () => {
      planning.resolve();
      await fetched;
    };
  };
  await fetch(0, 1, 2, 3);
  await eventually(() => expect(begun).toEqual([0]));
  return {
    lanes,
    group,
    committed,
    begun,
    planned,
    heartbeats,
    join,
    fetch,
    beginPlan,
    isPaused: () => isPaused,
    emit: (name: string, payload: object) => emitter.emit(name, { payload }),
    end: () => ends.shift()?.(),
  };
}

const now = performance.now.bind(performance);
let stoodStillMs = 0;

/** The process stands still for this long. */
function standStill(ms: number): void {
  stoodStillMs += ms;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + stoodStillMs);
}

describe('a lane consumer', () => {
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
    stoodStillMs = 0;
  });

  it('has no positions to store after the process stood still for long, until the group accepts a commit', async () => {
    const { lanes, group, end } = await consuming();
    const stored = () => lanes.storedPositions().map(({ offset }) => offset);
    end();
    await eventually(() => expect(stored()).toEqual([1]));
    group.refuses = 'UNKNOWN_MEMBER_ID';
    standStill(15_000);
    expect(stored()).toEqual([]);
    const { commits } = group;
    await eventually(() => expect(group.commits).toBeGreaterThan(commits + 2));
    expect(stored()).toEqual([]);
    group.refuses = undefined;
    await eventually(() => expect(stored()).toEqual([1]));
    await lanes.stop();
  });

  it('stores its positions once more before it leaves the group, and none afterwards', async () => {
    const storedAtEnd: number[] = [];
    const restores = { ...NO_RESTORES, beforeLeaving: async () => void storedAtEnd.push(...stored()) };
    const { lanes, end } = await consuming({ restores });
    const stored = () => lanes.storedPositions().map(({ offset }) => offset);
    const stopped = lanes.stop();
    end();
    await stopped;
    expect([storedAtEnd, stored()]).toEqual([[1], []]);
  });

  it('starts no task after the process stood still for long, until the group accepts a commit', async () => {
    const { lanes, group, begun, end } = await consuming();
    group.refuses = 'UNKNOWN_MEMBER_ID';
    standStill(15_000);
    await eventually(() => expect(group.commits).toBeGreaterThan(1));
    end();
    const { commits } = group;
    await eventually(() => expect(group.commits).toBeGreaterThan(commits + 2));
    expect(begun).toEqual([0]);
    group.refuses = undefined;
    await eventually(() => expect(begun).toEqual([0, 1]));
    await lanes.stop();
  });

  it('starts no task after a plan that took long, in which the process did not stand still, until the group accepts a commit', async () => {
    const { lanes, group, begun, beginPlan, end } = await consuming();
    await eventually(() => expect(group.commits).toBe(1));
    const endPlan = await beginPlan(4);
    for (let second = 1; second <= 8; second++) {
      standStill(1000);
      lanes.storedPositions();
    }
    group.refuses = 'UNKNOWN_MEMBER_ID';
    await endPlan();
    expect(lanes.storedPositions()).toEqual([]);
    end();
    await eventually(() => expect(group.commits).toBeGreaterThan(3));
    expect(begun).toEqual([0]);
    group.refuses = undefined;
    await eventually(() => expect(begun).toEqual([0, 1]));
    await lanes.stop();
  });

  it('starts no task and has no positions to store while a plan takes long, even if it is assigned its partitions again and its commits succeed', async () => {
    const { lanes, group, begun, join, beginPlan, end } = await consuming();
    await eventually(() => expect(group.commits).toBe(1));
    const endPlan = await beginPlan(4);
    const stored = [];
    for (let second = 1; second <= 25; second++) {
      standStill(1000);
      stored.push(lanes.storedPositions().length);
    }
    expect(stored).toEqual([...Array(4).fill(1), ...Array(21).fill(0)]);
    end();
    await eventually(() => expect(group.commits).toBe(2));
    join();
    await eventually(() => expect(group.commits).toBe(3));
    expect([begun, lanes.storedPositions()]).toEqual([[0], []]);
    // no commit keeps the partitions for a plan that may never end
    await new Promise((resolve) => setTimeout(resolve, 20 * COMMIT_EVERY_MS));
    expect(group.commits).toBe(3);
    await endPlan();
    await eventually(() => expect(begun).toEqual([0, 1]));
    await lanes.stop();
  });

  it('is silent because of a plan, not of Kafka, while one is in progress', async () => {
    const { lanes, beginPlan } = await consuming();
    const isPlanning = () => consumerStates().map(({ planning }) => planning);
    expect(isPlanning()).toEqual([false]);
    const endPlan = await beginPlan(4);
    expect(isPlanning()).toEqual([true]);
    await endPlan();
    expect(isPlanning()).toEqual([false]);
    await lanes.stop();
  });

  it('sends a heartbeat after each plan, of all records of a fetch or of some, and none during one', async () => {
    const { lanes, planned, heartbeats, fetch } = await consuming({ maxOutstanding: 10_000 });
    const sent: number[] = [];
    planned.with = async () => {
      const before = heartbeats.sent;
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(heartbeats.sent).toBe(before);
      sent.push(before);
    };
    planned.most = 400;
    await fetch(...Array.from({ length: 2000 }, (_, n) => n + 4));
    expect(sent.length).toBeGreaterThan(4);
    expect(new Set(sent).size).toBe(sent.length);
    await lanes.stop();
  });

  it('leaves the waiting tasks when it stops, although a long plan ends during the stop and the group refuses its commits', async () => {
    const drainMs = 5000;
    const { lanes, group, begun, beginPlan, end } = await consuming({ drainMs });
    const endPlan = await beginPlan(4);
    standStill(8000);
    group.refuses = 'UNKNOWN_MEMBER_ID';
    const start = Date.now();
    const stopped = lanes.stop();
    await endPlan();
    end();
    await stopped;
    expect(Date.now() - start).toBeLessThan(drainMs / 2);
    expect(begun).toEqual([0]);
  });

  it('does not wake the process for commits without partitions, although it stood still for long', async () => {
    const { lanes, join, end } = await consuming();
    end();
    join([]);
    const pauses = jest.spyOn(globalThis, 'setTimeout');
    const ticks = () => pauses.mock.calls.filter(([, ms]) => ms === COMMIT_EVERY_MS).length;
    standStill(15_000);
    let [seen, unchanged] = [0, 0];
    await eventually(() => {
      unchanged = ticks() === seen ? unchanged + 1 : 0;
      seen = ticks();
      expect(unchanged).toBe(10);
    });
    await lanes.stop();
  });

  it('is not in doubt about its partitions because it starts slowly', async () => {
    const { lanes } = await consuming({
      beforeFetch: (starting) => {
        starting.storedPositions();
        standStill(15_000);
      },
    });
    expect(lanes.storedPositions()).toHaveLength(1);
    await lanes.stop();
  });

  it.each(['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION'])(
    'starts no task after the group refused a commit with %s, until it has joined again',
    async (code) => {
      const { lanes, group, begun, join, end } = await consuming();
      end();
      await eventually(() => expect(begun).toEqual([0, 1]));
      group.refuses = code;
      end();
      await eventually(() => expect(begun).toEqual([0, 1, 2]));
      const { commits } = group;
      await eventually(() => expect(group.commits).toBeGreaterThan(commits));
      end();
      await eventually(() => expect(group.commits).toBeGreaterThan(commits + 3));
      expect(begun).toEqual([0, 1, 2]);
      group.refuses = undefined;
      join();
      await eventually(() => expect(begun).toEqual([0, 1, 2, 3]));
      await lanes.stop();
    },
  );

  it('does not make up for the commits that it missed while one hung', async () => {
    const { lanes, group, begun, end } = await consuming();
    const hanging = Promise.withResolvers<void>();
    group.hangs = hanging.promise;
    end();
    group.commits = 0;
    await new Promise((resolve) => setTimeout(resolve, 300));
    group.hangs = undefined;
    group.refuses = 'REBALANCE_IN_PROGRESS';
    hanging.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(group.commits).toBeLessThan(10);
    group.refuses = undefined;
    expect(begun).toEqual([0, 1]);
    await lanes.stop();
  });

  it('does not wake the process for commits while it has no work', async () => {
    const { lanes, group, begun, fetch, end } = await consuming();
    const pauses = jest.spyOn(globalThis, 'setTimeout');
    const ticks = () => pauses.mock.calls.filter(([, ms]) => ms === COMMIT_EVERY_MS).length;
    let [seen, unchanged] = [0, 0];
    for (let n = 1; n <= 4; n++) {
      await eventually(() => expect(begun).toHaveLength(n));
      end();
    }
    await eventually(() => {
      unchanged = ticks() === seen ? unchanged + 1 : 0;
      seen = ticks();
      expect(unchanged).toBe(10);
    });
    expect(group.commits).toBeGreaterThan(0);
    await fetch(4);
    expect(ticks()).toBe(seen + 1);
    const { commits } = group;
    end();
    await eventually(() => expect(group.commits).toBeGreaterThan(commits));
    await lanes.stop();
  });

  it('reports how long its oldest unfinished record has been in progress, until it stops', async () => {
    jest.useFakeTimers({ doNotFake: ['Date', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setTimeout', 'clearTimeout'] });
    const { lanes, begun, end } = await consuming();
    const seconds = async () =>
      (await metrics.getSingleMetric('sluice_consumer_oldest_record_seconds')!.get()).values.map(({ value }) => value);
    jest.advanceTimersByTime(1000);
    expect((await seconds())[0]).toBeGreaterThan(0);
    for (let n = 1; n <= 4; n++) {
      await eventually(() => expect(begun).toHaveLength(n));
      end();
    }
    await eventually(async () => {
      jest.advanceTimersByTime(1000);
      expect(await seconds()).toEqual([0]);
    });
    await lanes.stop();
    expect(await seconds()).toEqual([]);
  });

  it('returns the records of a partition that has no capacity, so that the others are fetched meanwhile', async () => {
    const { lanes, begun, end, fetch } = await consuming({ maxOutstanding: 4, partitions: [0, 1] });
    // resolves although no task ends
    expect(await fetch(4, 5)).toEqual([]);
    for (let n = 1; n <= 4; n++) {
      await eventually(() => expect(begun).toHaveLength(n));
      end();
    }
    expect(await fetch(4, 5)).toEqual(['5']);
    await eventually(() => expect(begun).toHaveLength(5));
    end();
    await eventually(() => expect(begun).toEqual([0, 1, 2, 3, 4, 5]));
    end();
    await lanes.stop();
  });

  it('pauses a partition for longer each time its records cannot be planned, and reads the others meanwhile', async () => {
    const { lanes, planned, fetch, isPaused } = await consuming({ partitions: [0, 1] });
    let isDown = true;
    planned.with = () => {
      if (isDown) throw new Error('the database is down');
    };
    const pauses: number[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      const start = performance.now();
      expect(await fetch(4, 5)).toEqual([]);
      expect(isPaused()).toBe(true);
      await eventually(() => expect(isPaused()).toBe(false));
      pauses.push(performance.now() - start);
    }
    for (const [index, least] of [95, 195, 395].entries()) expect(pauses[index]).toBeGreaterThan(least);
    isDown = false;
    expect(await fetch(4, 5)).toEqual(['5']);
    await lanes.stop();
  });

  it('resumes no partition while it stops', async () => {
    const { lanes, planned, fetch, isPaused } = await consuming();
    planned.with = () => {
      throw new Error('the database is down');
    };
    await fetch(4);
    const stopped = lanes.stop();
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(isPaused()).toBe(true);
    await stopped;
  });

  it('reads from an earlier position on if it returns there while the last records of a fetch are planned', async () => {
    const { lanes, planned, fetch } = await consuming();
    planned.with = (offsets) => {
      if (offsets.includes(5)) lanes.rewind([]);
    };
    await fetch(4, 5);
    expect(await fetch(0, 1, 2, 3)).toEqual(['3']);
    await lanes.stop();
  });

  it('hands over before it stops, begins tasks meanwhile, and commits those that are done', async () => {
    const handedOver = Promise.withResolvers<void>();
    const { lanes, committed, begun, end } = await consuming({ handOver: () => handedOver.promise });
    const stopped = lanes.stop();
    end();
    await eventually(() => expect(begun).toEqual([0, 1]));
    end();
    handedOver.resolve();
    await stopped;
    expect(committed.at(-1)).toBe('2');
  });

  it('hands over for a second at most before it stops, and begins no task afterwards', async () => {
    const { lanes, begun, committed, end } = await consuming({ drainMs: 20_000, handOver: () => new Promise<void>(() => {}) });
    setTimeout(end, 1500);
    await lanes.stop();
    expect([begun, committed.at(-1)]).toEqual([[0], '1']);
  });

  it('starts no task when the group rebalances while it hands over, and commits what is done', async () => {
    const handedOver = Promise.withResolvers<void>();
    const { lanes, begun, committed, emit, end } = await consuming({ handOver: () => handedOver.promise });
    const stopped = lanes.stop();
    emit('REBALANCING', { memberId: 'this' });
    end();
    await eventually(() => expect(committed.at(-1)).toBe('1'));
    expect(begun).toEqual([0]);
    handedOver.resolve();
    await stopped;
    expect(begun).toEqual([0]);
  });

  it('starts no task after the group has removed it, whatever it accepts, until it has joined again', async () => {
    const { lanes, group, begun, join, emit, end } = await consuming();
    emit('REBALANCING', { memberId: null });
    end();
    await eventually(() => expect(group.commits).toBeGreaterThan(0));
    expect(begun).toEqual([0]);
    join();
    await eventually(() => expect(begun).toEqual([0, 1]));
    await lanes.stop();
  });
});
