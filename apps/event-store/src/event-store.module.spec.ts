import { expect, it } from '@jest/globals';
import { handledMessages, ownedRequests, testApp } from '#testing';
import { EventStoreModule } from './event-store.module.js';

it('constructs every provider of the service, which handles each of its commands and queries once', async () => {
  const app = await testApp(EventStoreModule).compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('event-store.'))
      .sort(),
  ).toEqual(ownedRequests('event-store').sort());
  await app.close();
});
