import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { outboxSchema } from '#outbox';
import { statsSchema } from '#stats';
import { Delivered } from '../deliveries/history/delivered.entity.js';
import { Backlog, ParkedDelivery } from '../deliveries/store/delivery-store.entity.js';
import { ReplayRow } from '../replays/replay.entity.js';
import { AutoSubscriptionRow, SubscriptionRow } from '../subscriptions/subscription.entity.js';
import { secretContext } from '../webhooks/signing-secret.js';
import { WebhookRow } from '../webhooks/webhook.entity.js';
import { CreateRouting1795305600005 } from './migrations/0001-create-routing.js';

export const schema = schemaOf('routing', outboxSchema, emittersSchema, statsSchema, {
  entities: [WebhookRow, SubscriptionRow, AutoSubscriptionRow, ParkedDelivery, Backlog, Delivered, ReplayRow],
  sealed: ['secret', 'previous_secret'].map((column) => ({ table: 'webhook', key: ['id'], column, context: secretContext })),
  migrations: [CreateRouting1795305600005],
});
