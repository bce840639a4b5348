import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type FindOptionsWhere, Index, IsNull, LessThan, Not, PrimaryColumn, Repository, Unique } from 'typeorm';
import { type EmitterId, newId, type Subscription, type SubscriptionId, type UserId, type WebhookId } from '#contracts';
import { streamOf } from '#events';
import { BYTEWISE_TEXT, Database, deleteOlder, type Transaction } from '#database';

@Entity('subscription')
@Unique('subscription_owner_id_emitter_id_event_name_listener_id_key', ['owner_id', 'emitter_id', 'event_name', 'listener_id'])
// `INCLUDE (listener_id)`, which TypeORM reads as a fourth column and cannot write
@Index('subscription_match', { synchronize: false })
@Index('subscription_of_listener', ['listener_id'])
@Index('subscription_of_emitter', ['emitter_id'])
@Index('subscription_of_owner', ['owner_id', 'id'])
@Index('subscription_ended', ['ended_at'], { where: 'ended_at IS NOT NULL' })
export class SubscriptionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: Subscription['id'];

  @Column({ ...BYTEWISE_TEXT, select: false })
  owner_id!: UserId;

  /** A source or workflow, `dc_*`, `p_*`, or the owner. */
  @Column(BYTEWISE_TEXT)
  emitter_id!: Subscription['emitter_id'];

  @Column(BYTEWISE_TEXT)
  listener_id!: Subscription['listener_id'];

  /** As the request has it; `stream` is what it means. */
  @Column(BYTEWISE_TEXT)
  event_name!: string;

  @Column({ ...BYTEWISE_TEXT, select: false })
  stream!: string;

  /** When its emitter was deleted: from then on, it only applies to events from before, and those of the emitter's last runs. */
  @Column('timestamptz', { nullable: true, select: false })
  ended_at!: Date | null;
}

const COLUMNS = ['id', 'emitter_id', 'listener_id', 'event_name'];
const DAY_MS = 86_400_000;

/** The only writer of the table `subscription`. */
@Injectable()
export class SubscriptionsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(SubscriptionRow) private readonly subscriptions: Repository<SubscriptionRow>,
  ) {}

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

  /** Newest first. @param before the id of the last one that the caller has */
  async list(ownerId: UserId, before: SubscriptionId | undefined, limit: number): Promise<Subscription[]> {
    const where = { owner_id: ownerId, ended_at: IsNull(), ...(before === undefined ? {} : { id: LessThan(before) }) };
    return this.subscriptions.find({ where, order: { id: 'DESC' }, take: limit });
  }

  /** Deletes the subscription with these names, and returns it. */
  async delete(ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription[]> {
    const deleted = await this.subscriptions
      .createQueryBuilder()
      .delete()
      .where({ owner_id: ownerId, emitter_id: emitterId, listener_id: listenerId, event_name: eventName, ended_at: IsNull() })
      .returning(COLUMNS)
      .execute();
    return deleted.raw as Subscription[];
  }

  /** Deletes all subscriptions of an account. Returns how many there were. */
  async deleteAll(ownerId: UserId): Promise<number> {
    return (await this.subscriptions.delete({ owner_id: ownerId })).affected ?? 0;
  }

  /** Deletes every subscription that names this emitter, as emitter or as listener. */
  async deleteOf(transaction: Transaction, ownerId: UserId, id: string): Promise<void> {
    const subscriptions = transaction.rows(SubscriptionRow).createQueryBuilder();
    await subscriptions.delete().where('owner_id = :ownerId AND (emitter_id = :id OR listener_id = :id)', { ownerId, id }).execute();
  }

  /** Ends the subscriptions to a deleted emitter, and deletes those that name it as listener. */
  async endOf(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    await transaction.rows(SubscriptionRow).delete({ owner_id: ownerId, listener_id: id });
    await transaction.rows(SubscriptionRow).update({ owner_id: ownerId, emitter_id: id, ended_at: IsNull() }, { ended_at: () => 'now()' });
  }

  /** Continues the subscriptions to an emitter whose deletion was undone. */
  async continueOf(transaction: Transaction, ownerId: UserId, emitterId: EmitterId): Promise<void> {
    await transaction
      .rows(SubscriptionRow)
      .update({ owner_id: ownerId, emitter_id: emitterId, ended_at: Not(IsNull()) }, { ended_at: null });
  }

  /** Deletes those that ended more than this many days ago. */
  async deleteEnded(olderThanDays: number): Promise<void> {
    await deleteOlder(this.database, 'subscription', 'ended_at', new Date(Date.now() - olderThanDays * DAY_MS));
  }
}

/** Deletes the subscriptions of a deleted webhook. */
export async function deleteSubscriptionsTo(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.rows(SubscriptionRow).delete({ listener_id: webhookId });
}
