import { EventEmitter } from 'node:events';
import { describe, expect, it, jest } from '@jest/globals';
import type { Batch } from 'kafkajs';
import { createLog, metrics } from '#observability';
import { WatchedConsumer } from './consumer-life.js';
import type { KafkaClient } from './kafka.js';

/** A consumer of kafkajs that fetches when the test says so. */
async function watched() {
  const emitter = new EventEmitter();
  const events = Object.fromEntries(['GROUP_JOIN', 'FETCH_START', 'FETCH', 'HEARTBEAT', 'STOP', 'CRASH'].map((name) => [name, name]));
  const nothing = async () => {};
  const consumer = {
    events,
    on: (name: string, listener: () => void) => emitter.on(name, listener),
    connect: nothing,
    subscribe: nothing,
    run: nothing,
    disconnect: nothing,
  };
  const onInterruption = jest.fn();
  let connects = () => {};
  const watchedConsumer = (_: object, onConnection: () => void) => {
    connects = onConnection;
    return consumer;
  };
  const deleted: string[] = [];
  const admin = { deleteGroups: async (groups: string[]) => void deleted.push(...groups) };
  const kafka = { watchedConsumer, withAdmin: (work: (given: object) => unknown) => work(admin) } as unknown as KafkaClient;
  const started = new WatchedConsumer(kafka, 'group', createLog('test', 'silent'), { onInterruption, ownGroup: true });
  await started.start(['t'], { fromBeginning: true });
  return {
    onInterruption,
    connects: () => connects(),
    starts: (nodeId: number) => emitter.emit('FETCH_START', { payload: { nodeId } }),
    ends: (nodeId: number) => emitter.emit('FETCH', { payload: { nodeId } }),
    joins: (...partitions: number[]) => emitter.emit('GROUP_JOIN', { payload: { memberAssignment: { t: partitions } } }),
    fetches: (partition: number, lag: number) =>
      started.recordLag({ topic: 't', partition, offsetLag: () => String(lag) } as unknown as Batch),
    stop: () => started.stop(),
    group: started.group,
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
