import { schemaOf } from '#database';
import { emittersSchema } from '#emitters';
import { outboxSchema } from '#outbox';
import { statsSchema } from '#stats';
import { Delivered } from '../deliveries/history/delivered.repository.js';
import { Backlog } from '../deliveries/store/backlogs.repository.js';
import { ParkedDelivery } from '../deliveries/store/parked-delivery.entity.js';
import { ReplayRow } from '../replays/replays.repository.js';
import { AutoSubscriptionRow } from '../subscriptions/auto-subscriptions.repository.js';
import { SubscriptionRow } from '../subscriptions/subscriptions.repository.js';
import { secretContext, WebhookRow } from '../webhooks/webhook.entity.js';
import { CreateRouting1795305600005 } from './migrations/0001-create-routing.js';

export const schema = schemaOf('routing', outboxSchema, emittersSchema, statsSchema, {
  entities: [WebhookRow, SubscriptionRow, AutoSubscriptionRow, ParkedDelivery, Backlog, Delivered, ReplayRow],
  sealed: ['secret', 'previous_secret'].map((column) => ({ table: 'webhook', key: ['id'], column, context: secretContext })),
  migrations: [CreateRouting1795305600005],
});
