import { expect, it } from '@jest/globals';
import { handledMessages, idleSchedules, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { RoutingModule } from './routing.module.js';

it('constructs every provider of the service, which handles each of its commands and queries once, and reads the topics that it may read, and no schedule is idle', async () => {
  const app = await testApp(RoutingModule).compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('routing.'))
      .sort(),
  ).toEqual(ownedRequests('routing').sort());
  expect(topicsReadBy(app)).toEqual(topicsReadableBy('routing'));
  expect(idleSchedules(app)).toEqual([]);
  await app.close();
});
