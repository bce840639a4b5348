import { expect, it } from '@jest/globals';
import { handledMessages, idleSchedules, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { EventStoreModule } from './event-store.module.js';

it('constructs every provider of the service, which handles each of its commands and queries once, and reads the topics that it may read, and no schedule is idle', async () => {
  const app = await testApp(EventStoreModule).compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('event-store.'))
      .sort(),
  ).toEqual(ownedRequests('event-store').sort());
  expect(topicsReadBy(app)).toEqual(topicsReadableBy('event-store'));
  expect(idleSchedules(app)).toEqual([]);
  await app.close();
});
