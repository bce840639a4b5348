import { describe, expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { PlanBatches } from './plan-batches.js';
import type { Task } from './lanes.js';
import { LogRecord } from './log-record.js';

const record = (topic: string, partition: number, offset: number, bytes = 0) =>
  new LogRecord(topic, partition, { key: null, value: Buffer.alloc(bytes), offset: String(offset), timestamp: '1' } as KafkaMessage, 1);

const records = (topic: string, partition: number, count: number, bytes = 0) =>
  Array.from({ length: count }, (_, offset) => record(topic, partition, offset, bytes));

const nameOf = ({ topic, partition, offset }: LogRecord) => `${topic}/${partition}/${offset}`;

const most = (records: number) => ({ records, bytes: Infinity });

const taskOf = (each: LogRecord): Task[] => [{ lane: nameOf(each), run: () => Promise.resolve() }];

const lanesOf = (plans: Task[][]) => plans.flat().map(({ lane }) => lane);

describe('PlanBatches', () => {
  it('plans the partitions of a fetch in one call and returns to each its own tasks', async () => {
    const calls: string[][] = [];
    const plans = new PlanBatches((given) => {
      calls.push(given.map(nameOf));
      return given.map(taskOf);
    }, most(100));
    const [first, second] = await Promise.all([plans.plan('a', records('a', 0, 2)), plans.plan('a', records('a', 1, 1))]);
    expect(calls).toEqual([['a/1/0', 'a/0/0', 'a/0/1']]);
    expect(lanesOf(first)).toEqual(['a/0/0', 'a/0/1']);
    expect(lanesOf(second)).toEqual(['a/1/0']);
  });

  it('gives a call the records of one topic only', async () => {
    const calls: string[][] = [];
    const plans = new PlanBatches((given) => {
      calls.push(given.map(nameOf));
      return given.map(taskOf);
    }, most(100));
    await Promise.all([plans.plan('a', records('a', 0, 1)), plans.plan('b', records('b', 0, 1)), plans.plan('a', records('a', 1, 1))]);
    expect(calls).toEqual([['a/0/0', 'a/1/0'], ['b/0/0']]);
  });

  it('begins a call when the one before it has ended and its tasks were passed on', async () => {
    const order: string[] = [];
    const plans = new PlanBatches(async (given) => {
      const name = nameOf(given[0]!);
      order.push(`begin ${name}`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`end ${name}`);
      return given.map(taskOf);
    }, most(1));
    const planned = ['a/0', 'a/1', 'a/2'].map((_, partition) =>
      plans.plan('a', records('a', partition, 1)).then((tasks) => order.push(`push ${lanesOf(tasks)[0]}`)),
    );
    await Promise.all(planned);
    expect(order).toEqual(['a/0/0', 'a/1/0', 'a/2/0'].flatMap((name) => [`begin ${name}`, `end ${name}`, `push ${name}`]));
  });

  it('passes no more records and bytes to a call than allowed, except for one large record', async () => {
    const sizes: number[] = [];
    const plans = new PlanBatches(
      (given) => {
        sizes.push(given.length);
        return given.map(taskOf);
      },
      { records: 10, bytes: 20 },
    );
    const planned = await Promise.all([25, 6, 5, 4].map((count, partition) => plans.plan('a', records('a', partition, count))));
    expect(sizes).toEqual([9, 6, 10]);
    expect(planned.map(({ length }) => length)).toEqual([10, 6, 5, 4]);
    expect(await plans.plan('a', records('a', 0, 3, 9))).toHaveLength(2);
    expect(await plans.plan('a', records('a', 0, 3, 99))).toHaveLength(1);
  });

  it('passes fewer records to the call after one that returned the tasks of some only, and more again later', async () => {
    const sizes: number[] = [];
    const plans = new PlanBatches((given) => {
      sizes.push(given.length);
      return (sizes.length === 1 ? given.slice(0, 3) : given).map(taskOf);
    }, most(10));
    const first = await Promise.all([plans.plan('a', records('a', 0, 2)), plans.plan('a', records('a', 1, 4))]);
    expect(first.map(lanesOf)).toEqual([['a/0/0', 'a/0/1'], ['a/1/0']]);
    for (let n = 0; n < 3; n++) await plans.plan('a', records('a', 0, 20));
    expect(sizes).toEqual([6, 3, 4, 5]);
  });

  it('does not leave the few records of a partition out because those of another have too many tasks', async () => {
    const plans = new PlanBatches((given) => given.slice(0, 2).map(taskOf), most(10));
    const many = plans.plan('a', records('a', 0, 8));
    const few = plans.plan('a', records('a', 1, 1));
    expect(lanesOf(await few)).toEqual(['a/1/0']);
    expect(lanesOf(await many)).toEqual(['a/0/0']);
  });

  it('plans no record while there is no capacity for its tasks', async () => {
    let hasCapacity = true;
    const plans = new PlanBatches(
      (given) => {
        hasCapacity = false;
        return given.map(taskOf);
      },
      most(2),
      () => hasCapacity,
    );
    const planned = await Promise.all([0, 1].map((partition) => plans.plan('a', records('a', partition, 2))));
    expect(planned.map(({ length }) => length)).toEqual([2, 0]);
    hasCapacity = true;
    expect(await plans.plan('a', records('a', 1, 2))).toHaveLength(2);
  });

  describe('when a call fails', () => {
    /** The calls, and whether the records of the partitions 0 to 2 could be planned, if a call with those of partition 1 fails. */
    const plannedBeside = async (error: Error) => {
      const calls: string[][] = [];
      const plans = new PlanBatches(
        (given) => {
          calls.push(given.map(nameOf));
          if (given.some(({ partition }) => partition === 1)) throw error;
          return given.map(taskOf);
        },
        most(100),
        undefined,
        (reason) => (reason as Error).message === 'no database',
      );
      const planned = await Promise.allSettled([0, 1, 2].map((partition) => plans.plan('a', records('a', partition, 1))));
      const later = await plans.plan('a', records('a', 0, 1));
      expect(lanesOf(later)).toEqual(['a/0/0']);
      calls.pop();
      return { calls, planned: planned.map((each) => (each.status === 'fulfilled' ? lanesOf(each.value) : (each.reason as unknown))) };
    };

    it('plans each partition that shared it alone, so that the others continue', async () => {
      const error = new Error('an event that cannot be planned');
      expect(await plannedBeside(error)).toEqual({
        calls: [['a/0/0', 'a/1/0', 'a/2/0'], ['a/0/0'], ['a/1/0'], ['a/2/0']],
        planned: [['a/0/0'], error, ['a/2/0']],
      });
    });

    it('reports a transient error to every partition that shared it', async () => {
      const error = new Error('no database');
      expect(await plannedBeside(error)).toEqual({ calls: [['a/0/0', 'a/1/0', 'a/2/0']], planned: [error, error, error] });
    });
  });
});
