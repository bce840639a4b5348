import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type FindOptionsWhere, Index, PrimaryColumn, Repository, Unique } from 'typeorm';
import { type EmitterId, newId, type Subscription, type SubscriptionId, type UserId, type WebhookId } from '#contracts';
import { streamOf } from '#events';
import { BYTEWISE_TEXT, Database, type Transaction } from '#database';
import { EndedEmittersRepository, HAS_ENDED, type KeptSubscriptions } from './ended-emitters.repository.js';

@Entity('subscription')
@Unique('subscription_owner_id_emitter_id_event_name_listener_id_key', ['owner_id', 'emitter_id', 'event_name', 'listener_id'])
// `INCLUDE (listener_id)`, which TypeORM reads as a fourth column and cannot write
@Index('subscription_match', { synchronize: false })
@Index('subscription_of_listener', ['listener_id'])
@Index('subscription_of_emitter', ['emitter_id'])
@Index('subscription_of_owner', ['owner_id', 'id'])
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
}

const COLUMNS = ['id', 'emitter_id', 'listener_id', 'event_name'];
/** Subscriptions that are deleted in one step, because one statement for all of them could take longer than a statement may; and deleted emitters. */
const [STEP_ROWS, STEP_EMITTERS] = [10_000, 1000];

/** The only writer of the table `subscription`. */
@Injectable()
export class SubscriptionsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(SubscriptionRow) private readonly subscriptions: Repository<SubscriptionRow>,
    private readonly ended: EndedEmittersRepository,
  ) {}

  /** Creates the subscription, or finds the one that has the same three names. */
  async create(transaction: Transaction, ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription> {
    const named = { owner_id: ownerId, emitter_id: emitterId, listener_id: listenerId, event_name: eventName };
    // one that exists may be deleted before it is found
    for (;;) {
      await this.add(transaction, ownerId, emitterId, [{ listener_id: listenerId, event_name: eventName }]);
      const created = await transaction.rows(SubscriptionRow).findOneBy(named as FindOptionsWhere<SubscriptionRow>);
      if (created) return created;
    }
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
    const found = this.subscriptions.createQueryBuilder('subscription').where({ owner_id: ownerId }).andWhere(`NOT ${HAS_ENDED}`);
    if (before !== undefined) found.andWhere('subscription.id < :before', { before });
    return found.orderBy('subscription.id', 'DESC').limit(limit).getMany();
  }

  /** Deletes the subscription with these names, and returns it. */
  async delete(ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription[]> {
    const deleted = await this.subscriptions
      .createQueryBuilder()
      .delete()
      .where({ owner_id: ownerId, emitter_id: emitterId, listener_id: listenerId, event_name: eventName })
      .andWhere(`NOT ${HAS_ENDED}`)
      .returning(COLUMNS)
      .execute();
    return deleted.raw as Subscription[];
  }

  /** Deletes all subscriptions of an account. Returns how many there were. */
  async deleteAll(ownerId: UserId): Promise<number> {
    const count = await this.deleteInSteps(
      `DELETE FROM subscription WHERE id IN (SELECT id FROM subscription WHERE owner_id = $1 LIMIT ${STEP_ROWS})`,
      ownerId,
    );
    await this.ended.removeAll(ownerId);
    return count;
  }

  /** Deletes every subscription that names this emitter, as emitter or as listener. */
  async deleteOf(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    const subscriptions = transaction.rows(SubscriptionRow).createQueryBuilder();
    await subscriptions.delete().where('owner_id = :ownerId AND (emitter_id = :id OR listener_id = :id)', { ownerId, id }).execute();
    await this.ended.remove(transaction, id);
  }

  /** Deletes the subscriptions that name this emitter as listener. */
  async deleteTo(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    await transaction.rows(SubscriptionRow).delete({ owner_id: ownerId, listener_id: id });
  }

  /** Ends the subscriptions to a deleted emitter, and deletes those that name it as listener. */
  async endOf(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    await this.deleteTo(transaction, ownerId, id);
    await this.ended.add(transaction, ownerId, id);
  }

  /** Continues the subscriptions to an emitter whose deletion was undone. */
  async continueOf(transaction: Transaction, emitterId: EmitterId): Promise<void> {
    await this.ended.remove(transaction, emitterId);
  }

  /** Deletes those of deleted emitters that are not kept any more. */
  async deleteEnded(kept: KeptSubscriptions): Promise<void> {
    const ids = await this.ended.findOld(kept);
    while (ids.length > 0) {
      const some = ids.splice(0, STEP_EMITTERS);
      // an emitter that continues meanwhile keeps those that are left; another replica may do the same
      await this.deleteInSteps(
        `WITH ended AS MATERIALIZED (SELECT emitter_id FROM ended_emitter WHERE emitter_id = ANY($1) FOR UPDATE SKIP LOCKED)
         DELETE FROM subscription WHERE id IN (SELECT id FROM subscription JOIN ended USING (emitter_id) LIMIT ${STEP_ROWS})`,
        some,
      );
      await this.ended.removeWithout(some);
    }
  }

  /** Repeats a statement that deletes at most STEP_ROWS until it deletes fewer. Returns how many it has deleted. */
  private async deleteInSteps(statement: string, value: unknown): Promise<number> {
    let count = 0;
    for (let deleted = STEP_ROWS; deleted === STEP_ROWS; count += deleted) {
      const { rowCount } = await this.database.query(statement, [value]);
      deleted = rowCount ?? 0;
    }
    return count;
  }
}

/** Deletes the subscriptions of a deleted webhook. */
export async function deleteSubscriptionsTo(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.rows(SubscriptionRow).delete({ listener_id: webhookId });
}
