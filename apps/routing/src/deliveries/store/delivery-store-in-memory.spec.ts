import { DeliveryStoreInMemory } from './delivery-store-in-memory-for-tests.js';
import { describeDeliveryStore } from './delivery-store-suite-for-tests.js';

describeDeliveryStore('the store in memory', async () => {
  const store = new DeliveryStoreInMemory();
  return {
    store,
    addWebhook: async (id, ownerId, rateLimit) =>
      store.addWebhook(id, ownerId, rateLimit === undefined ? {} : { rate_limit: rateLimit, spilled: true }),
    retry: async (id, _, place) => store.retry(id, place),
    activate: async (id) => store.setActive(id, true),
    close: async () => {},
  };
});
