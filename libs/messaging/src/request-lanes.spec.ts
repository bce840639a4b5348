import { describe, expect, it } from '@jest/globals';
import { LaneIntake } from './lane-intake.js';
import { LogRecord } from './log-record.js';
import { RequestLanes } from './request-lanes.js';

const STARTED = 1_700_000_000_000;

let offset = 0;
const request = (kind: 'command' | 'query', key: string | null, timestamp: number): LogRecord =>
  new LogRecord(
    'requests',
    0,
    {
      offset: String(offset++),
      timestamp: String(timestamp),
      key: key === null ? null : Buffer.from(key),
      value: Buffer.from(kind),
      headers: {},
      attributes: 0,
    },
    timestamp,
  );

const newLanes = () => {
  const lanes = new RequestLanes(({ value }) => String(value) === 'command');
  lanes.assigned(STARTED);
  return lanes;
};

describe('the lane of a request', () => {
  const before = STARTED - 50;
  const later = STARTED + 5000;

  it.each<[string, LogRecord, boolean]>([
    ['a command from before the assignment shares the lane of its key', request('command', 'u_1', before), true],
    [
      'a command that another machine, whose clock is ahead, has sent before it shares it, too',
      request('command', 'u_1', STARTED + 500),
      true,
    ],
    ['a query from before changes nothing, and has its own lane', request('query', 'u_1', before), false],
    ['a later command has its own lane', request('command', 'u_1', later), false],
    ['a command without a key has its own lane', request('command', null, before), false],
  ])('%s', (_, record, isInOrder) => {
    const { lane } = newLanes().task(record, async () => {});
    expect(lane === 'in order u_1').toBe(isInOrder);
  });

  it('is that of the key for later commands while one from before is unfinished, whether it ends or is dropped', async () => {
    const lanes = newLanes();
    const laneNow = (key: string) => lanes.task(request('command', key, later), async () => {});
    const [first, second] = [1, 2].map(() => lanes.task(request('command', 'u_1', before), async () => {}));
    expect(laneNow('u_2').lane).not.toBe('in order u_2');
    expect(laneNow('u_1').lane).toBe('in order u_1');
    await first!.run(() => {});
    expect(laneNow('u_1').lane).toBe('in order u_1');
    second!.drop?.();
    expect(laneNow('u_1').lane).not.toBe('in order u_1');
  });

  it('lets repeated commands of a key end in their order, before later ones', async () => {
    const lanes = newLanes();
    const ended: string[] = [];
    const durations = { create: 30, delete: 10, 'create again': 0 };
    const names = Object.keys(durations) as (keyof typeof durations)[];
    const intake = new LaneIntake({
      ...{ concurrency: 10, maxOutstanding: 100 },
      plan: async (records) =>
        records.map((record, index) => [
          lanes.task(record, async () => {
            const name = names[index]!;
            await new Promise((resolve) => setTimeout(resolve, durations[name]));
            ended.push(name);
          }),
        ]),
    });
    intake.keepOnly([{ topic: 'requests', partition: 0 }]);
    intake.assign([{ topic: 'requests', partition: 0, offset: 0, clock: 0, ended: [] }]);
    const messages = [before, before, later].map((timestamp, index) => ({
      ...{
        offset: String(index),
        timestamp: String(timestamp),
        key: Buffer.from('u_1'),
        value: Buffer.from('command'),
        headers: {},
        attributes: 0,
      },
    }));
    await intake.take('requests', 0, messages);
    await intake.lanes.waitUntilBelow(1);
    expect(ended).toEqual(names);
  });
});
