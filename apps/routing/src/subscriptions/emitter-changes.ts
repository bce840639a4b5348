import { Injectable } from '@nestjs/common';
import type { EmitterState } from '#contracts';
import type { Transaction } from '#database';
import type { EmitterListener } from '#emitters';
import { AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';

/**
 * What comes and goes with emitters, in the transaction in which the room learns of it: subscriptions that name a
 * deleted one go, and a new one gets those of the auto-subscriptions that are older than it.
 */
@Injectable()
export class EmitterChanges implements EmitterListener {
  constructor(
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
  ) {}

  async emitterChanged(transaction: Transaction, state: EmitterState, first: boolean): Promise<void> {
    const { owner_id, emitter_id, deleted, created_at_ms } = state;
    // a workflow that was removed and registered again is a new emitter, even if nobody told of the removal
    const revived = !first && !deleted && (await this.autoSubscriptions.revived(transaction, owner_id, emitter_id, created_at_ms));
    if (deleted || revived) await this.subscriptions.deleteOf(transaction, owner_id, emitter_id);
    if (deleted || !(first || revived)) return;
    const covering = await this.autoSubscriptions.covering(transaction, owner_id, created_at_ms);
    const others = covering.filter(({ listener_id }) => listener_id !== emitter_id);
    if (others.length > 0) await this.subscriptions.add(transaction, owner_id, emitter_id, others);
  }
}
