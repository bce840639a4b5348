import { expect, it } from '@jest/globals';
import { handledMessages, idleSchedules, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { GatewayModule } from './gateway.module.js';

it('constructs every provider of the gateway, which handles no commands or queries, and reads the topics that it may read, and no schedule is idle', async () => {
  const app = await testApp(GatewayModule).compile();
  const handled = handledMessages(app);
  expect(handled.filter((name) => name.startsWith('gateway.'))).toEqual([]);
  expect(topicsReadBy(app)).toEqual(topicsReadableBy('gateway'));
  expect(idleSchedules(app)).toEqual([]);
  await app.close();
});
