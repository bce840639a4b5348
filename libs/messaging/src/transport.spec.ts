import { describe, expect, it } from '@jest/globals';
import type { ConsumerSettings } from './handlers.js';
import type { Task } from './lanes.js';
import { LogRecord } from './log-record.js';
import { KafkaTransport, type TransportOptions } from './transport.js';

type Planner = (records: LogRecord[]) => Promise<Task[][]>;

const transport = new KafkaTransport({} as TransportOptions) as unknown as {
  planner(
    kind: 'consumes' | 'consumes-batch',
    source: { topic: string },
    handler: (records: LogRecord[]) => Promise<Task[][] | undefined>,
    groupOf?: (payload: LogRecord) => string,
  ): Planner;
};
const plannerOf = (handler: (records: LogRecord[]) => Promise<Task[][] | undefined>): Planner =>
  transport.planner('consumes-batch', { topic: 'events' }, handler);

const records = [0, 1, 2].map(
  (offset) => new LogRecord('events', 0, { key: null, value: null, offset: `${offset}`, timestamp: '1', attributes: 0, headers: {} }, 1),
);
const taskOf = ({ offset }: LogRecord): Task[] => [{ lane: `${offset}`, run: () => Promise.resolve() }];

describe('a batch of records', () => {
  it('is planned as far as its handler has planned it', async () => {
    expect(await plannerOf(async (given) => given.slice(0, 2).map(taskOf))(records)).toMatchObject([[{ lane: '0' }], [{ lane: '1' }]]);
  });

  it('needs no more work if its handler returns nothing', async () => {
    expect(await plannerOf(async () => undefined)(records)).toEqual([[], [], []]);
  });
});

it('a record has the lane of its key, in the group of its payload', async () => {
  const planner = transport.planner(
    'consumes',
    { topic: 'events' },
    async () => undefined,
    ({ offset }) => `group ${offset}`,
  );
  expect(await planner(records.slice(1))).toMatchObject([
    [{ lane: 'events null', group: 'group 1' }],
    [{ lane: 'events null', group: 'group 2' }],
  ]);
});

it('a service does not start if two methods of a group have different settings', () => {
  const transport = new KafkaTransport({} as TransportOptions);
  const add = (topic: string, settings: ConsumerSettings) =>
    transport.addHandler(topic, async () => {}, false, { entry: { kind: 'consumes', source: { topic }, group: 'facts', settings } });
  add('a', { commitEveryMs: 500 });
  add('b', { commitEveryMs: 500, gatherMs: 250 });
  const { recordConsumers } = transport as unknown as { recordConsumers(): unknown };
  expect(() => recordConsumers.call(transport)).toThrow('"facts" have different settings');
});

it('starts no consumer after it was closed, even if its service continues its start meanwhile', async () => {
  const transport = new KafkaTransport({ service: 'catalog' } as TransportOptions);
  // its consumer would need the options that are missing
  transport.addHandler('a', async () => {}, false, { entry: { kind: 'consumes', source: { topic: 'a' }, group: 'facts', settings: {} } });
  await transport.close();
  expect(await new Promise((resolve) => transport.listen(resolve))).toBeUndefined();
});
