import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type FindOptionsWhere, Repository } from 'typeorm';
import { newId, type Subscription, type UserId, type WebhookId } from '#contracts';
import { streamOf } from '#events';
import type { Transaction } from '#database';
import { SubscriptionRow } from './subscription.entity.js';

const COLUMNS = ['id', 'emitter_id', 'listener_id', 'event_name'];

/** The only writer of the table `subscription`. */
@Injectable()
export class SubscriptionsRepository {
  constructor(@InjectRepository(SubscriptionRow) private readonly subscriptions: Repository<SubscriptionRow>) {}

  /** Creates the subscription, or finds the one that has the same three names. */
  async create(transaction: Transaction, ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription> {
    await this.add(transaction, ownerId, emitterId, [{ listener_id: listenerId, event_name: eventName }]);
    const named = { owner_id: ownerId, emitter_id: emitterId, listener_id: listenerId, event_name: eventName };
    const created = await transaction.rows(SubscriptionRow).findOneBy(named as FindOptionsWhere<SubscriptionRow>);
    if (!created) throw new Error('the subscription was deleted while it was created');
    return created;
  }

  /** Creates those of an emitter's subscriptions that are missing. SQL: all of them in one statement, which skips the others. */
  async add(
    transaction: Transaction,
    ownerId: UserId,
    emitterId: string,
    subscriptions: Pick<Subscription, 'listener_id' | 'event_name'>[] | { listener_id: string; event_name: string }[],
  ): Promise<void> {
    await transaction.query(
      `INSERT INTO subscription (id, owner_id, emitter_id, listener_id, event_name, stream)
       SELECT id, $1, $2, listener_id, event_name, stream FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS s (id, listener_id, event_name, stream)
       ON CONFLICT (owner_id, emitter_id, event_name, listener_id) DO NOTHING`,
      [
        ownerId,
        emitterId,
        subscriptions.map(() => newId('subscription')),
        subscriptions.map(({ listener_id }) => listener_id),
        subscriptions.map(({ event_name }) => event_name),
        subscriptions.map(({ event_name }) => streamOf(event_name)),
      ],
    );
  }

  async list(ownerId: UserId): Promise<Subscription[]> {
    return this.subscriptions.find({ where: { owner_id: ownerId }, order: { id: 'DESC' } });
  }

  /** Deletes the subscription with these names, and returns it. */
  async delete(ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription[]> {
    const deleted = await this.subscriptions
      .createQueryBuilder()
      .delete()
      .where({ owner_id: ownerId, emitter_id: emitterId, listener_id: listenerId, event_name: eventName })
      .returning(COLUMNS)
      .execute();
    return deleted.raw as Subscription[];
  }

  /** Deletes every subscription that names this emitter, as emitter or as listener. */
  async deleteOf(transaction: Transaction, ownerId: UserId, id: string): Promise<void> {
    const subscriptions = transaction.rows(SubscriptionRow).createQueryBuilder();
    await subscriptions.delete().where('owner_id = :ownerId AND (emitter_id = :id OR listener_id = :id)', { ownerId, id }).execute();
  }
}

/** Deletes the subscriptions of a deleted webhook. */
export async function deleteSubscriptionsTo(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.rows(SubscriptionRow).delete({ listener_id: webhookId });
}
