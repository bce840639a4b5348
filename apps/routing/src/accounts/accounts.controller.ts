import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { AccountRemoval, AccountSuspension, type FullAccount, listFullInRouting, removeFromRouting, suspendWebhooks } from '#contracts';
import { Handles } from '#messaging';
import { WaitingData } from '#waiting-data';
import { ReplaysRepository } from '../replays/replays.repository.js';
import { AutoSubscriptionsRepository } from '../subscriptions/auto-subscriptions.repository.js';
import { SubscriptionsRepository } from '../subscriptions/subscriptions.repository.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';

/** Suspends, removes and limits what accounts have. */
@Controller()
export class AccountsController {
  constructor(
    private readonly webhooks: WebhooksRepository,
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
    private readonly replays: ReplaysRepository,
    private readonly waiting: WaitingData,
  ) {}

  @Handles(suspendWebhooks)
  async suspend(@Payload() { owner_id, suspended }: AccountSuspension): Promise<{ webhooks: number }> {
    const webhooks = await this.webhooks.suspend(owner_id, suspended);
    // a replay delivers to workflows, too; one that is created from now on is cancelled
    if (suspended) await this.replays.cancelAll(owner_id);
    return { webhooks };
  }

  @Handles(listFullInRouting)
  listFull(): FullAccount[] {
    return this.waiting.list();
  }

  @Handles(removeFromRouting)
  async remove(@Payload() { owner_id }: AccountRemoval): Promise<{ subscriptions: number }> {
    await this.webhooks.forgetSuspension(owner_id);
    await this.replays.deleteAll(owner_id);
    // first, because they make subscriptions
    const automatic = await this.autoSubscriptions.deleteAll(owner_id);
    return { subscriptions: automatic + (await this.subscriptions.deleteAll(owner_id)) };
  }
}
