import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Batch } from 'kafkajs';
import { createLog, type Log, metrics } from '#observability';
import { consumerStates, WatchedConsumer } from './consumer-life.js';
import type { KafkaClient } from './kafka.js';

/** A consumer of kafkajs that fetches when the test says so. */
async function watched({ ownGroup = true, vital = true, joined = Promise.resolve() } = {}) {
  const emitter = new EventEmitter();
  const events = Object.fromEntries(['GROUP_JOIN', 'FETCH_START', 'FETCH', 'HEARTBEAT', 'STOP', 'CRASH'].map((name) => [name, name]));
  const nothing = async () => {};
  const consumer = {
    events,
    on: (name: string, listener: () => void) => emitter.on(name, listener),
    connect: nothing,
    subscribe: nothing,
    run: jest.fn(() => joined),
    disconnect: jest.fn(nothing),
  };
  const onInterruption = jest.fn();
  let connects = () => {};
  const watchedConsumer = (_: object, onConnection: () => void) => {
    connects = onConnection;
    return consumer;
  };
  const deleted: string[] = [];
  const describeCluster = jest.fn(async () => ({}));
  const admin = { deleteGroups: async (groups: string[]) => void deleted.push(...groups), describeCluster };
  const onFatal = jest.fn();
  const kafka = { watchedConsumer, onFatal, withAdmin: (work: (given: object) => unknown) => work(admin) } as unknown as KafkaClient;
  const log = { ...createLog('test', 'silent'), debug: jest.fn(), warn: jest.fn(), error: jest.fn() } as unknown as jest.Mocked<Log>;
  const started = new WatchedConsumer(kafka, 'group', log, { onInterruption, ownGroup, vital });
  const starting = started.start(['t'], { fromBeginning: true });
  await Promise.race([starting, new Promise(setImmediate)]);
  return {
    onInterruption,
    connects: () => connects(),
    starts: (nodeId: number) => emitter.emit('FETCH_START', { payload: { nodeId } }),
    ends: (nodeId: number) => emitter.emit('FETCH', { payload: { nodeId } }),
    joins: (...partitions: number[]) => emitter.emit('GROUP_JOIN', { payload: { memberAssignment: { t: partitions } } }),
    fetches: (partition: number, lag: number) =>
      started.recordLag({ topic: 't', partition, offsetLag: () => String(lag) } as unknown as Batch),
    crashes: (error: Error, restart = false) => emitter.emit('CRASH', { payload: { error, restart } }),
    ...{ run: consumer.run, disconnect: consumer.disconnect },
    ...{ onFatal, log, describeCluster },
    plans: () => void (started.planning = true),
    stop: () => started.stop(),
    group: started.group,
    state: () => consumerStates().find(({ group }) => group === started.group),
    deleted,
  };
}

/** The values of the metric, by group. */
const lags = async () =>
  (await metrics.getSingleMetric('sluice_consumer_lag_records')!.get()).values.map(({ labels, value }) => [labels.group, value]);

describe('a consumer', () => {
  it('reports no interruption while each fetch from each broker ends', async () => {
    const { onInterruption, starts, ends } = await watched();
    for (let n = 0; n < 3; n++) {
      starts(1);
      starts(2);
      ends(2);
      ends(1);
    }
    expect(onInterruption).not.toHaveBeenCalled();
  });

  it('reports an interruption before each connection to a broker, because another one may listen there by now', async () => {
    const { onInterruption, connects, starts, ends } = await watched();
    connects();
    expect(onInterruption).toHaveBeenCalledTimes(1);
    starts(1);
    ends(1);
    expect(onInterruption).toHaveBeenCalledTimes(1);
  });

  it('reports an interruption before the fetch that follows a failed one, because the topic may have been replaced', async () => {
    const { onInterruption, starts, ends } = await watched();
    starts(1);
    ends(1);
    starts(1);
    expect(onInterruption).not.toHaveBeenCalled();
    starts(1);
    expect(onInterruption).toHaveBeenCalledTimes(1);
    ends(1);
    starts(1);
    expect(onInterruption).toHaveBeenCalledTimes(1);
  });

  it('has no lag after the group has given its partitions to another process', async () => {
    const { joins, fetches, stop } = await watched();
    joins(0, 1);
    fetches(0, 20_000);
    fetches(1, 5);
    expect(await lags()).toEqual([['group', 20_005]]);
    joins();
    expect(await lags()).toEqual([['group', 0]]);
    await stop();
  });

  it('deletes its group when it stops, if no other consumer can use it', async () => {
    const { stop, group, deleted } = await watched();
    expect(group).toMatch(/^group\.[0-9a-f-]{36}$/);
    await stop();
    expect(deleted).toEqual([group]);
  });

  it('joins its group before it leaves it, if it stops while it starts', async () => {
    const joined = Promise.withResolvers<void>();
    const { stop, disconnect } = await watched({ joined: joined.promise });
    const stopped = stop();
    await new Promise(setImmediate);
    expect(disconnect).not.toHaveBeenCalled();
    joined.resolve();
    await stopped;
    expect(disconnect).toHaveBeenCalled();
  });

  it('stops although it cannot join its group', async () => {
    const { stop, disconnect } = await watched({ joined: new Promise(() => {}) });
    await stop();
    expect(disconnect).toHaveBeenCalled();
  });

  it('leaves no metric behind, although its group has a unique name', async () => {
    for (let starts = 0; starts < 2; starts++) {
      const { joins, fetches, stop } = await watched();
      joins(0);
      fetches(0, 7);
      expect(await lags()).toEqual([['group', 7]]);
      const stopped = stop();
      fetches(0, 3);
      await stopped;
      expect(await lags()).toEqual([]);
    }
  });
});

const failure = (name: string, type?: string): Error => Object.assign(new Error('failed'), { name, type });
const down = failure('KafkaJSConnectionError');
const denied = failure('KafkaJSProtocolError', 'GROUP_AUTHORIZATION_FAILED');
const bug = new TypeError('not a function');

describe('the silence of a consumer', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it.each([-3_600_000, 3_600_000])('is measured while it runs, and not by a clock that is set by %i ms', async (ms) => {
    const { joins, state, stop } = await watched();
    joins(0);
    await jest.advanceTimersByTimeAsync(1000);
    jest.setSystemTime(Date.now() + ms);
    expect(state()!.silentMs).toBe(1000);
    await stop();
  });
});

describe('a consumer that has crashed', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const restarted = { runs: 2, isFatal: false };
  const ended = { runs: 1, isFatal: true };
  it.each([
    ['a vital one is restarted while the brokers are down', true, down, restarted],
    ['a vital one ends its process without permission', true, denied, ended],
    ['a vital one ends its process after a bug', true, bug, ended],
    ['another one is restarted while the brokers are down', false, down, restarted],
    ['another one is restarted without permission', false, denied, restarted],
    ['another one is restarted after a bug', false, bug, restarted],
  ])('%s', async (_, vital, error, { runs, isFatal }) => {
    const { crashes, joins, state, run, onFatal, log, stop } = await watched({ vital });
    await jest.advanceTimersByTimeAsync(0);
    joins(0);
    expect(state()).toMatchObject({ vital, running: true });
    crashes(error);
    expect(state()).toMatchObject({ vital, running: false });
    await jest.advanceTimersByTimeAsync(999);
    expect(run).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(run).toHaveBeenCalledTimes(runs);
    expect(onFatal.mock.calls).toEqual(isFatal ? [[error, expect.stringMatching('group')]] : []);
    // a person has to act if nothing else shows that it is down
    expect([log.warn, log.error].map(({ mock }) => mock.calls.length)).toEqual(isFatal ? [0, 0] : vital ? [1, 0] : [0, 1]);
    await stop();
    expect(state()).toBeUndefined();
  });

  it('is restarted after longer and longer pauses until it has joined its group', async () => {
    const { crashes, joins, run, stop } = await watched();
    const start = Date.now();
    const at: number[] = [];
    run.mockImplementation(async () => {
      at.push((Date.now() - start) / 1000);
      if (at.length < 7) throw down;
      joins(0);
    });
    crashes(down);
    await jest.advanceTimersByTimeAsync(120_000);
    expect(at).toEqual([1, 3, 7, 15, 30, 45, 60]);
    await stop();
  });

  it('is left to kafkajs if that restarts it, which is counted', async () => {
    const restarts = async () =>
      (await metrics.getSingleMetric('sluice_consumer_revivals_total')!.get()).values.find(({ labels }) => labels.group === 'group')
        ?.value ?? 0;
    const { crashes, run, onFatal, stop } = await watched({ ownGroup: false });
    const before = await restarts();
    crashes(bug, true);
    expect(await restarts()).toBe(before + 1);
    await jest.advanceTimersByTimeAsync(120_000);
    expect(run).toHaveBeenCalledTimes(1);
    expect(onFatal).not.toHaveBeenCalled();
    await stop();
  });

  it('joins its group before it leaves it, if it stops while it is restarted', async () => {
    const joined = Promise.withResolvers<void>();
    const { crashes, run, stop, disconnect } = await watched();
    run.mockReturnValue(joined.promise);
    crashes(down);
    await jest.advanceTimersByTimeAsync(1000);
    expect(run).toHaveBeenCalledTimes(2);
    const stopped = stop();
    await jest.advanceTimersByTimeAsync(0);
    expect(disconnect).not.toHaveBeenCalled();
    joined.resolve();
    await stopped;
    expect(disconnect).toHaveBeenCalled();
  });

  it('is not restarted after it was stopped', async () => {
    const { crashes, run, stop } = await watched();
    crashes(down);
    await stop();
    await jest.advanceTimersByTimeAsync(120_000);
    expect(run).toHaveBeenCalledTimes(1);
  });
});

describe('a consumer whose fetch does not end', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const consumer = async (options = {}) => {
    const it = await watched(options);
    it.joins(0);
    it.starts(1);
    return it;
  };
  const minutes = (n: number) => jest.advanceTimersByTimeAsync(n * 60_000);

  it('ends its process after some minutes in which a broker has responded to other requests', async () => {
    const { onFatal, stop } = await consumer();
    await minutes(2.5);
    expect(onFatal).not.toHaveBeenCalled();
    await minutes(10);
    expect(onFatal.mock.calls).toEqual([[expect.objectContaining({ message: expect.stringContaining('fetch') }), expect.any(String)]]);
    await stop();
  });

  it.each<[string, object, (consumer: Awaited<ReturnType<typeof watched>>) => void]>([
    ['no broker responds', {}, ({ describeCluster }) => void describeCluster.mockRejectedValue(down)],
    ['it is not vital', { vital: false }, () => {}],
    ['it has crashed and is being restarted', {}, ({ crashes }) => void crashes(down, true)],
    ['it has stopped', {}, ({ stop }) => void stop()],
    ['its records wait for the database', {}, ({ ends }) => void ends(1)],
    ['its records are being planned, while the last fetch from a broker that has left is remembered', {}, ({ plans }) => plans()],
  ])('does not end its process if %s', async (_, options, happens) => {
    const it = await consumer(options);
    happens(it);
    await minutes(60);
    expect(it.onFatal).not.toHaveBeenCalled();
    await it.stop();
  });

  it('begins to count again after each contact', async () => {
    const { starts, ends, onFatal, stop } = await consumer();
    for (let n = 0; n < 10; n++) {
      await minutes(2);
      ends(1);
      starts(1);
    }
    expect(onFatal).not.toHaveBeenCalled();
    await stop();
  });
});
