import { Injectable } from '@nestjs/common';
import type { EmitterState } from '#contracts';
import type { Transaction } from '#database';
import { EmitterChangeHandler, updateCreation } from '#emitters';
import { AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';

/**
 * Runs in the transaction that stores a change of an emitter: deletes the subscriptions of a deleted emitter, and subscribes the listeners of older
 * auto-subscriptions to a new one.
 */
@Injectable()
export class EmitterChanges extends EmitterChangeHandler {
  constructor(
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
  ) {
    super();
  }

  async emitterChanged(transaction: Transaction, state: EmitterState, first: boolean): Promise<void> {
    const { owner_id, emitter_id, deleted, created_at_ms } = state;
    // a workflow that was removed and registered again is a new emitter, even if the fact of its removal has not arrived
    const revived = !first && !deleted && (await updateCreation(transaction, state));
    if (deleted || revived) {
      await this.subscriptions.deleteOf(transaction, owner_id, emitter_id);
      await this.autoSubscriptions.deleteOf(transaction, owner_id, emitter_id);
    }
    if (deleted || !(first || revived)) return;
    const covering = await this.autoSubscriptions.covering(transaction, owner_id, created_at_ms);
    const others = covering.filter(({ listener_id }) => listener_id !== emitter_id);
    if (others.length > 0) await this.subscriptions.add(transaction, owner_id, emitter_id, others);
  }
}
