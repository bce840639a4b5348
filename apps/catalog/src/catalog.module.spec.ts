import { expect, it } from '@jest/globals';
import { emitterChanged } from '#contracts';
import { handledMessages, idleSchedules, ownedRequests, testApp, topicsReadableBy, topicsReadBy } from '#testing';
import { CatalogModule } from './catalog.module.js';

it('constructs every provider of the catalog, which handles each of its commands and queries once, and reads the topics that it may read, and no schedule is idle', async () => {
  const app = await testApp(CatalogModule).compile();
  const handled = handledMessages(app);
  expect(handled.filter((name) => name.startsWith('catalog.')).sort()).toEqual(ownedRequests('catalog').sort());
  // it reads its own facts after a restore only, with a reader of its log
  expect([...topicsReadBy(app), emitterChanged.topic].sort()).toEqual(topicsReadableBy('catalog'));
  expect(idleSchedules(app)).toEqual([]);
  await app.close();
});
