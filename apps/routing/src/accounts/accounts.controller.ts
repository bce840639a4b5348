import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { AccountRemoval, AccountSuspension, removeFromRouting, suspendWebhooks } from '#contracts';
import { Handles } from '#messaging';
import { ReplaysRepository } from '../replays/replays.repository.js';
import { AutoSubscriptionsRepository } from '../subscriptions/auto-subscriptions.repository.js';
import { SubscriptionsRepository } from '../subscriptions/subscriptions.repository.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';

/** Suspends and removes what accounts have. */
@Controller()
export class AccountsController {
  constructor(
    private readonly webhooks: WebhooksRepository,
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
    private readonly replays: ReplaysRepository,
  ) {}

  @Handles(suspendWebhooks)
  async suspend(@Payload() { owner_id, suspended }: AccountSuspension): Promise<{ webhooks: number }> {
    // a replay delivers to workflows, too
    if (suspended) await this.replays.cancelAll(owner_id);
    return { webhooks: await this.webhooks.suspend(owner_id, suspended) };
  }

  @Handles(removeFromRouting)
  async remove(@Payload() { owner_id }: AccountRemoval): Promise<{ subscriptions: number }> {
    await this.replays.deleteAll(owner_id);
    // first, because they make subscriptions
    const automatic = await this.autoSubscriptions.deleteAll(owner_id);
    return { subscriptions: automatic + (await this.subscriptions.deleteAll(owner_id)) };
  }
}
