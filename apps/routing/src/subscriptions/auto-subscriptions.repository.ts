import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type FindOptionsWhere, Index, PrimaryColumn, Repository, Unique } from 'typeorm';
import { type AutoSubscription, newId, SluiceError, type UserId, type WebhookId } from '#contracts';
import { BYTEWISE_TEXT, NOW_MS, type Transaction } from '#database';

@Entity('auto_subscription')
@Unique('auto_subscription_owner_id_event_name_listener_id_key', ['owner_id', 'event_name', 'listener_id'])
@Index('auto_subscription_of_listener', ['listener_id'])
export class AutoSubscriptionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: AutoSubscription['id'];

  @Column({ ...BYTEWISE_TEXT, select: false })
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  event_name!: string;

  @Column(BYTEWISE_TEXT)
  listener_id!: AutoSubscription['listener_id'];

  /** It covers emitters created from then on. */
  @Column('bigint', { select: false })
  created_at_ms!: number;
}

export type CoveringSubscription = Pick<AutoSubscriptionRow, 'id' | 'event_name' | 'listener_id' | 'created_at_ms'>;

const COLUMNS = ['id', 'event_name', 'listener_id'];
/** The advisory lock of an account's auto-subscriptions. */
const TURN = "hashtext('auto-subscription'), hashtext($1)";

/** The only writer of the table `auto_subscription`. */
@Injectable()
export class AutoSubscriptionsRepository {
  constructor(@InjectRepository(AutoSubscriptionRow) private readonly autoSubscriptions: Repository<AutoSubscriptionRow>) {}

  /**
   * Creates the auto-subscription, or finds the one of the same listener and event name. Throws a conflict if the account has `most` others: each of them
   * costs a row for every new emitter, in a transaction that the new emitters of others share.
   */
  async create(
    transaction: Transaction,
    ownerId: UserId,
    listenerId: string,
    eventName: string,
    most = Infinity,
  ): Promise<AutoSubscription> {
    await transaction.query(`SELECT pg_advisory_xact_lock(${TURN})`, [ownerId]);
    const named = { owner_id: ownerId, listener_id: listenerId, event_name: eventName };
    const existing = await transaction.rows(AutoSubscriptionRow).findOneBy(named as FindOptionsWhere<AutoSubscriptionRow>);
    if (existing) return existing;
    const count = most < Infinity ? await transaction.rows(AutoSubscriptionRow).countBy({ owner_id: ownerId }) : 0;
    if (count >= most) throw new SluiceError('conflict', `this account has ${count} auto-subscriptions; the limit is ${most}`);
    const { rows } = await transaction.query<AutoSubscription>(
      // SQL: the clock is read when this transaction has its turn, so that a new emitter is older than this time or sees this row. It is the clock of
      // the database server, by which the catalog dates emitters too
      `INSERT INTO auto_subscription (id, owner_id, listener_id, event_name, created_at_ms)
       VALUES ($1, $2, $3, $4, ${NOW_MS}) RETURNING ${COLUMNS.join(', ')}`,
      [newId('autoSubscription'), ownerId, listenerId, eventName],
    );
    return rows[0]!;
  }

  async list(ownerId: UserId): Promise<AutoSubscription[]> {
    return this.autoSubscriptions.find({ where: { owner_id: ownerId }, order: { id: 'DESC' } });
  }

  /** Whether the account has any. */
  exist(ownerId: UserId): Promise<boolean> {
    return this.autoSubscriptions.existsBy({ owner_id: ownerId });
  }

  async delete(ownerId: UserId, listenerId: string, eventName: string): Promise<AutoSubscription[]> {
    const deleted = await this.autoSubscriptions
      .createQueryBuilder()
      .delete()
      .where({ owner_id: ownerId, listener_id: listenerId, event_name: eventName })
      .returning(COLUMNS)
      .execute();
    return deleted.raw as AutoSubscription[];
  }

  /**
   * Those that cover emitters created until this time, and since when. Learning of an emitter and creating an auto-subscription take turns, so that none
   * falls between the two. Without those of a webhook that is being deleted; the others stay until the transaction ends, so that
   * their deletion finds the new subscriptions. Prepared SQL: it runs for new emitters.
   */
  async covering(transaction: Transaction, ownerId: UserId, createdAtMs: number): Promise<CoveringSubscription[]> {
    // with other emitters, but not with an auto-subscription that is being made
    await transaction.query({ name: 'auto-cover-turn', text: `SELECT pg_advisory_xact_lock_shared(${TURN})`, values: [ownerId] });
    const { rows } = await transaction.query<CoveringSubscription>({
      name: 'auto-covering',
      text: `WITH covering AS MATERIALIZED (
               SELECT id, event_name, listener_id, created_at_ms FROM auto_subscription WHERE owner_id = $1 AND created_at_ms <= $2
             ), kept AS MATERIALIZED (
               SELECT id FROM webhook WHERE id IN (SELECT listener_id FROM covering) FOR KEY SHARE SKIP LOCKED
             )
             SELECT * FROM covering WHERE NOT starts_with(listener_id, 'wh_') OR listener_id IN (SELECT id FROM kept)`,
      values: [ownerId, createdAtMs],
    });
    return rows;
  }

  /** Deletes all auto-subscriptions of an account. Returns how many there were. */
  async deleteAll(ownerId: UserId): Promise<number> {
    return (await this.autoSubscriptions.delete({ owner_id: ownerId })).affected ?? 0;
  }

  /** Deletes the auto-subscriptions of a listener, when no emitter that is being learnt of subscribes it. Returns whether it had any. */
  async deleteOf(transaction: Transaction, ownerId: UserId, listenerId: string): Promise<boolean> {
    const exist = {
      name: 'auto-subscriptions-to',
      text: 'SELECT FROM auto_subscription WHERE listener_id = $1 LIMIT 1',
      values: [listenerId],
    };
    if ((await transaction.query(exist)).rowCount === 0) return false;
    await transaction.query(`SELECT pg_advisory_xact_lock(${TURN})`, [ownerId]);
    const autoSubscriptions = transaction.rows(AutoSubscriptionRow).createQueryBuilder();
    await autoSubscriptions.delete().where('owner_id = :ownerId AND listener_id = :listenerId', { ownerId, listenerId }).execute();
    return true;
  }
}

/** Deletes the auto-subscriptions of a deleted webhook. */
export async function deleteAutoSubscriptionsTo(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.query({
    name: 'auto-subscriptions-delete-of-webhook',
    text: 'DELETE FROM auto_subscription WHERE listener_id = $1',
    values: [webhookId],
  });
}
