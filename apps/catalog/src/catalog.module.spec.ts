import { expect, it } from '@jest/globals';
import { handledMessages, ownedRequests, testApp } from '#testing';
import { CatalogModule } from './catalog.module.js';

it('constructs every provider of the catalog, which handles each of its commands and queries once', async () => {
  const app = await testApp(CatalogModule).compile();
  const handled = handledMessages(app);
  expect(handled.filter((name) => name.startsWith('catalog.')).sort()).toEqual(ownedRequests('catalog').sort());
  expect(handled).toContain('workflows workflows');
  await app.close();
});
