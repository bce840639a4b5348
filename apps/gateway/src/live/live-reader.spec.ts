import { expect, it } from '@jest/globals';
import type { EmitterId, StoredPosition } from '#contracts';
import { eventRecord } from '#events';
import { type Consumers, LogRecord } from '#messaging';
import { createLog } from '#observability';
import type { GatewayConfig } from '../gateway.config.js';
import type { LiveConfig } from './live.config.js';
import { LiveReader } from './live-reader.js';
import type { StorePositions } from './store-positions.js';

it('begins where the store is, and reads a partition that the topic gets later from its beginning', async () => {
  const stored = [{ partition: 0, offset: 7, clock: 70 }];
  const store = { read: async () => stored } as unknown as StorePositions;
  const reader = new LiveReader(createLog('test', 'silent'), {} as Consumers, store, {} as LiveConfig, {} as GatewayConfig);
  expect([...(await reader.positions([0, 1]))]).toEqual([
    [0, { offset: 7, clock: 70 }],
    [1, { offset: 0, clock: 0 }],
  ]);
  stored.push({ partition: 2, offset: 5, clock: 50 });
  expect((await reader.positions([0, 1, 2])).get(2)).toEqual({ offset: 0, clock: 0 });
});

it.each([
  ['one subscriber', 1, 50],
  ['many subscribers', 300, 2],
])('yields to the sockets after a number of events for %s', async (_, subscribers, events) => {
  const emitterId: EmitterId = 'dc_000000000000000001';
  const store = { read: async () => [] } as unknown as StorePositions;
  const consumers = { start: async () => {}, stop: async () => {} } as unknown as Consumers;
  const reader = new LiveReader(createLog('test', 'silent'), consumers, store, {} as LiveConfig, {} as GatewayConfig);
  let taken = 0;
  const joined = Array.from({ length: subscribers }, () =>
    reader.join({ emitterId, stream: '', begin: () => {}, take: () => void taken++ }),
  );
  await reader.positions([0]);
  await Promise.all(joined);
  const records = Array.from({ length: 120 }, (__, offset) => {
    const { key, value, headers } = eventRecord({ emitterId, stream: '', emitId: `e${offset}`, json: Buffer.from('1') });
    const message = { key: Buffer.from(key), value, headers, offset: String(offset), timestamp: '1000', attributes: 0 };
    return new LogRecord('events', 0, message, 1000);
  });
  const done = reader.handOut(records, { offset: 0, clock: 0 });
  expect(taken).toBe(events * subscribers);
  await done;
  expect(taken).toBe(120 * subscribers);
  await reader.stop();
});

it('begins where the store is, not where it was when reading stopped before the store replied', async () => {
  const replies: ((positions: StoredPosition[]) => void)[] = [];
  const store = { read: () => new Promise((resolve) => replies.push(resolve)) } as unknown as StorePositions;
  const consumers = { start: async () => void reader.positions([0]), stop: async () => {} } as unknown as Consumers;
  const reader = new LiveReader(createLog('test', 'silent'), consumers, store, {} as LiveConfig, {} as GatewayConfig);
  const listener = { emitterId: 'dc_000000000000000001', stream: '', begin: () => {}, take: () => {} } as const;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = reader.join(listener);
  await turn();
  await reader.stop();
  await expect(first).rejects.toMatchObject({ code: 'unavailable' });
  const second = reader.join(listener);
  await turn();
  expect(replies).toHaveLength(2);
  for (const [index, offset] of [7, 1000].entries()) {
    replies[index]!([{ partition: 0, offset, clock: offset }]);
    await turn();
  }
  expect([...(await second)]).toEqual([[0, { offset: 1000, clock: 1000 }]]);
  await reader.stop();
});
