import { Injectable } from '@nestjs/common';
import { type EmitterState, RECORDS_GONE_AFTER_DAYS, type UserId } from '#contracts';
import type { Transaction } from '#database';
import { type EmitterChange, EmitterChangeHandler, updateCreation } from '#emitters';
import { DELETE_STATS } from '#stats';
import { cancelReplaysOf, cancelReplaysTo } from '../replays/replays.repository.js';
import { AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';

const DAY_MS = 86_400_000;

/**
 * Runs in the transaction that stores a change of an emitter: ends the subscriptions to a deleted emitter, cancels its replays, and those to one that is switched
 * off, and subscribes the listeners of older auto-subscriptions to a new one, also if it is deleted already.
 */
@Injectable()
export class EmitterChanges extends EmitterChangeHandler {
  constructor(
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
  ) {
    super();
  }

  async emittersChanged(transaction: Transaction, changes: EmitterChange[]): Promise<void> {
    const created: EmitterState[] = [];
    for (const { state, first } of changes) {
      const { owner_id, emitter_id, deleted } = state;
      // a workflow that was removed and registered again is a new emitter, even if the fact of its removal has not arrived
      const revived = !first && !deleted && (await updateCreation(transaction, state));
      if (deleted) {
        await transaction.query({ name: 'emitter-delete-stats', text: DELETE_STATS, values: [emitter_id] });
        await this.subscriptions.endOf(transaction, owner_id, emitter_id);
      } else if (revived) await this.subscriptions.deleteOf(transaction, owner_id, emitter_id);
      else if (!first) await this.subscriptions.continueOf(transaction, emitter_id);
      if (deleted || revived) {
        // behind what takes long: from here on, the account's new emitters wait, and with them those of others. They may have subscribed it until now
        if (await this.autoSubscriptions.deleteOf(transaction, owner_id, emitter_id))
          await this.subscriptions.deleteTo(transaction, owner_id, emitter_id);
        await cancelReplaysOf(transaction, emitter_id);
      } else if (!state.active) await cancelReplaysTo(transaction, emitter_id);
      if (revived || (first && (!deleted || mayHaveEvents(state)))) created.push(state);
    }
    const byOwner = [...Map.groupBy(created, ({ owner_id }) => owner_id)];
    // in one order: replicas would otherwise wait for each other
    for (const [ownerId, emitters] of byOwner.sort(([a], [b]) => (a < b ? -1 : 1))) await this.subscribe(transaction, ownerId, emitters);
  }

  /** Subscribes the listeners of the account's older auto-subscriptions to new emitters. */
  private async subscribe(transaction: Transaction, ownerId: UserId, emitters: EmitterState[]): Promise<void> {
    const found = await this.autoSubscriptions.covering(
      transaction,
      ownerId,
      Math.max(...emitters.map(({ created_at_ms }) => created_at_ms)),
    );
    for (const { emitter_id, created_at_ms, deleted } of emitters) {
      const covering = found.filter((each) => each.created_at_ms <= created_at_ms && each.listener_id !== emitter_id);
      if (covering.length > 0) await this.subscriptions.add(transaction, ownerId, emitter_id, covering);
      if (covering.length > 0 && deleted) await this.subscriptions.endOf(transaction, ownerId, emitter_id);
    }
  }
}

/** Whether Kafka may have events of a deleted emitter: it was deleted a moment after its creation, or while this service was down. */
const mayHaveEvents = ({ created_at_ms }: EmitterState): boolean => created_at_ms > Date.now() - RECORDS_GONE_AFTER_DAYS * DAY_MS;
