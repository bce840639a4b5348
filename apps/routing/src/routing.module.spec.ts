import { expect, it } from '@jest/globals';
import { handledMessages, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { RoutingModule } from './routing.module.js';

it('constructs every provider of the service, which handles each of its commands and queries once, and reads the topics that it may read', async () => {
  const app = await testApp(RoutingModule).compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('routing.'))
      .sort(),
  ).toEqual(ownedRequests('routing').sort());
  expect(topicsReadBy(app)).toEqual(topicsReadableBy('routing'));
  await app.close();
});
