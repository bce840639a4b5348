import { expect, it } from '@jest/globals';
import type { Consumers } from '#messaging';
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
