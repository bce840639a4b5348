import { expect, it } from '@jest/globals';
import { handledMessages, ownedRequests, testApp } from '#testing';
import { RoutingModule } from './routing.module.js';

it('constructs every provider of the service, which handles each of its commands and queries once', async () => {
  const app = await testApp(RoutingModule).compile();
  expect(
    handledMessages(app)
      .filter((name) => name.startsWith('routing.'))
      .sort(),
  ).toEqual(ownedRequests('routing').sort());
  await app.close();
});
