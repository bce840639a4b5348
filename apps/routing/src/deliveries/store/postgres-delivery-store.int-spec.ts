import { freshDatabase } from '#testing';
import { schema } from '../../database/schema.js';
import { WebhookRow } from '../../webhooks/webhook.entity.js';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { RoutingWebhookDependents } from '../../routing-webhook-dependents.js';
import { BacklogsRepository } from './backlogs.repository.js';
import { ParkedDeliveriesRepository } from './parked-deliveries.repository.js';
import { postgresDeliveryStore } from './postgres-delivery-store-for-tests.js';
import { describeDeliveryStore } from './delivery-store-suite-for-tests.js';

describeDeliveryStore('the store in PostgreSQL', async () => {
  const { database, drop } = await freshDatabase(schema);
  const webhooks = new WebhooksRepository(
    database,
    database.rows(WebhookRow),
    new RoutingWebhookDependents(new BacklogsRepository(database)),
  );
  const parked = new ParkedDeliveriesRepository(database, new BacklogsRepository(database));
  return {
    store: postgresDeliveryStore(database, webhooks),
    addWebhook: async (id, ownerId, rateLimit = undefined) => {
      const fields = { name: null, description: null, url: 'http://example.test', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
      await webhooks.create(ownerId, { id, ...fields, external_id: null, rate_limit: rateLimit ?? null });
    },
    retry: async (id, ownerId, place) => void (await parked.retry(ownerId, id, place)),
    activate: async (id, ownerId) => void (await webhooks.update(ownerId, id, { active: true })),
    close: drop,
  };
});
