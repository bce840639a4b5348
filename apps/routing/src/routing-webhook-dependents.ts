import { Injectable } from '@nestjs/common';
import type { UserId, WebhookId } from '#contracts';
import { together, type Transaction } from '#database';
import { DELETE_STATS } from '#stats';
import { DELETE_DELIVERED } from './deliveries/history/delivered.repository.js';
import { BacklogsRepository, DELETE_BACKLOG } from './deliveries/store/backlogs.repository.js';
import { deleteParkedDeliveries } from './deliveries/store/parked-deliveries.repository.js';
import { cancelReplaysOf, cancelReplaysTo } from './replays/replays.repository.js';
import { deleteAutoSubscriptionsTo } from './subscriptions/auto-subscriptions.repository.js';
import { deleteSubscriptionsTo } from './subscriptions/subscriptions.repository.js';
import { WebhookDependents } from './webhooks/webhooks.repository.js';

const DELETE_REST = together(DELETE_BACKLOG, DELETE_DELIVERED, DELETE_STATS);

/** Applies a change of a webhook to its subscriptions and deliveries. */
@Injectable()
export class RoutingWebhookDependents extends WebhookDependents {
  constructor(private readonly backlogs: BacklogsRepository) {
    super();
  }

  webhooksChanged(transaction: Transaction, ids: WebhookId[]): Promise<void> {
    return this.backlogs.restart(transaction, ids);
  }

  webhookSwitchedOff(transaction: Transaction, id: WebhookId): Promise<void> {
    return cancelReplaysTo(transaction, id);
  }

  async webhookDeleted(transaction: Transaction, ownerId: UserId, id: WebhookId): Promise<void> {
    await deleteSubscriptionsTo(transaction, id);
    await deleteAutoSubscriptionsTo(transaction, id);
    await deleteParkedDeliveries(transaction, ownerId, id);
    await transaction.query({ name: 'webhook-delete-rest', text: DELETE_REST, values: [id] });
    await cancelReplaysOf(transaction, id);
  }
}
