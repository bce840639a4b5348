import type { Database } from '#database';
import { createLog } from '#observability';
import type { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { BacklogsRepository } from './backlogs.repository.js';
import { NextDeliveriesRepository } from './next-deliveries.repository.js';
import { ParkedDeliveriesRepository } from './parked-deliveries.repository.js';
import { PostgresDeliveryStore } from './postgres-delivery-store.js';

export const postgresDeliveryStore = (database: Database, webhooks: WebhooksRepository): PostgresDeliveryStore => {
  const backlogs = new BacklogsRepository(database);
  return new PostgresDeliveryStore(
    createLog('store', 'silent'),
    database,
    webhooks,
    new ParkedDeliveriesRepository(database, backlogs),
    new NextDeliveriesRepository(database),
    backlogs,
  );
};
