import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type FindOptionsWhere, Index, PrimaryColumn, Repository, Unique } from 'typeorm';
import { type EmitterId, newId, type Subscription, type SubscriptionId, type UserId, type WebhookId } from '#contracts';
import { streamOf } from '#events';
import { BYTEWISE_TEXT, Database, NOW_MS, type Transaction } from '#database';
import { EndedEmittersRepository, HAS_ENDED, type KeptSubscriptions } from './ended-emitters.repository.js';
import { EndedSubscriptionRow } from './ended-subscription.entity.js';

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

/** Subscriptions that are deleted in one step, because one statement for all of them could take longer than a statement may; and deleted emitters. */
const [STEP_ROWS, STEP_EMITTERS] = [10_000, 1000];
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];

/** Deletes some rows of `ended_subscription`. Another replica may do the same: each takes what the other has not locked. */
const deleteEndedWhere = (condition: string): string =>
  `DELETE FROM ended_subscription WHERE ctid = ANY (ARRAY(SELECT ctid FROM ended_subscription WHERE ${condition} LIMIT ${STEP_ROWS} FOR UPDATE SKIP LOCKED))`;

/** In the order in which a request that ends a subscription locks their rows, and moves it from one to the other. */
const TABLES = ['subscription', 'ended_subscription'];

/** The only writer of the tables `subscription` and `ended_subscription`. */
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
    subscriptions: { listener_id: string; event_name: string }[],
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

  /** Deletes the subscription with these names, and returns it. SQL: one statement, so that each event is matched with the row in one of the two tables. */
  async delete(ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription[]> {
    const { rows } = await this.database.query<Subscription>(
      `WITH deleted AS (
         DELETE FROM subscription WHERE owner_id = $1 AND emitter_id = $2 AND listener_id = $3 AND event_name = $4 AND NOT ${HAS_ENDED} RETURNING *
       ), ended AS (
         INSERT INTO ended_subscription (owner_id, emitter_id, stream, listener_id, ended_at_ms)
         SELECT owner_id, emitter_id, stream, listener_id, ${NOW_MS} FROM deleted
         ON CONFLICT (owner_id, emitter_id, stream, listener_id)
         DO UPDATE SET ended_at_ms = greatest(ended_subscription.ended_at_ms, excluded.ended_at_ms)
       )
       SELECT id, emitter_id, listener_id, event_name FROM deleted`,
      [ownerId, emitterId, listenerId, eventName],
    );
    return rows;
  }

  /** Deletes all subscriptions of an account. Returns how many there were. */
  async deleteAll(ownerId: UserId): Promise<number> {
    const count = await this.deleteInSteps(
      `DELETE FROM subscription WHERE id IN (SELECT id FROM subscription WHERE owner_id = $1 LIMIT ${STEP_ROWS})`,
      [ownerId],
    );
    await this.deleteInSteps(deleteEndedWhere('owner_id = $1'), [ownerId]);
    await this.ended.removeAll(ownerId);
    return count;
  }

  /** Deletes every subscription that names this emitter, as emitter or as listener. */
  async deleteOf(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    const named = 'owner_id = :ownerId AND (emitter_id = :id OR listener_id = :id)';
    await transaction.rows(SubscriptionRow).createQueryBuilder().delete().where(named, { ownerId, id }).execute();
    await transaction.rows(EndedSubscriptionRow).createQueryBuilder().delete().where(named, { ownerId, id }).execute();
    await this.ended.remove(transaction, id);
  }

  /** Deletes the subscriptions that name this emitter as listener. */
  async deleteTo(transaction: Transaction, ownerId: UserId, id: EmitterId): Promise<void> {
    for (const table of TABLES)
      await transaction.query({
        name: `${table}-delete-to`,
        text: `DELETE FROM ${table} WHERE owner_id = $1 AND listener_id = $2`,
        values: [ownerId, id],
      });
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

  /** Deletes those that have ended, by a request or with their emitter, and are not kept any more. */
  async deleteEnded(kept: KeptSubscriptions): Promise<void> {
    await this.deleteOld(kept);
    const ids = await this.ended.findOld(kept);
    while (ids.length > 0) {
      const some = ids.splice(0, STEP_EMITTERS);
      // an emitter that continues meanwhile keeps those that are left; another replica may do the same
      await this.deleteInSteps(
        `WITH ended AS MATERIALIZED (SELECT emitter_id FROM ended_emitter WHERE emitter_id = ANY($1) FOR UPDATE SKIP LOCKED)
         DELETE FROM subscription WHERE id IN (SELECT id FROM subscription JOIN ended USING (emitter_id) LIMIT ${STEP_ROWS})`,
        [some],
      );
      await this.ended.removeWithout(some);
    }
  }

  /** Deletes those that a request ended some days ago, and of an account that has more than `most` the oldest ones, as soon as they ended some minutes ago. */
  private async deleteOld({ days, most, minutes }: KeptSubscriptions): Promise<void> {
    await this.deleteInSteps(deleteEndedWhere(`ended_at_ms < (SELECT (${NOW_MS} - $1)::bigint)`), [days * DAY_MS]);
    const { rows } = await this.database.query<{ owner_id: UserId; until_ms: number }>(
      `SELECT owner_id, least((
           SELECT ended_at_ms FROM ended_subscription AS own WHERE own.owner_id = crowded.owner_id ORDER BY ended_at_ms DESC OFFSET $1 LIMIT 1
         ), ${NOW_MS} - $2)::bigint AS until_ms
       FROM (SELECT owner_id FROM ended_subscription GROUP BY owner_id HAVING count(*) > $1) AS crowded`,
      [most, minutes * MINUTE_MS],
    );
    for (const { owner_id, until_ms } of rows)
      await this.deleteInSteps(deleteEndedWhere('owner_id = $1 AND ended_at_ms <= $2'), [owner_id, until_ms]);
  }

  /** Repeats a statement that deletes at most STEP_ROWS until it deletes fewer. Returns how many it has deleted. */
  private async deleteInSteps(statement: string, values: unknown[]): Promise<number> {
    let count = 0;
    for (let deleted = STEP_ROWS; deleted === STEP_ROWS; count += deleted) {
      const { rowCount } = await this.database.query(statement, values);
      deleted = rowCount ?? 0;
    }
    return count;
  }
}

/** Deletes the subscriptions of a deleted webhook. */
export async function deleteSubscriptionsTo(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  for (const table of TABLES)
    await transaction.query({
      name: `${table}-delete-of-webhook`,
      text: `DELETE FROM ${table} WHERE listener_id = $1`,
      values: [webhookId],
    });
}
