import { Injectable } from '@nestjs/common';
import { newId, streamOf, type Subscription, type UserId } from '#contracts';
import { Database, type Transaction } from '#database';

const COLUMNS = 'id, emitter_id, listener_id, event_name';

@Injectable()
export class SubscriptionsRepository {
  constructor(private readonly database: Database) {}

  /** Makes the subscription, or finds the one that has the same three names. */
  async create(transaction: Transaction, ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription> {
    await this.add(transaction, ownerId, emitterId, [{ listener_id: listenerId, event_name: eventName }]);
    const { rows } = await transaction.query<Subscription>(
      `SELECT ${COLUMNS} FROM subscription WHERE owner_id = $1 AND emitter_id = $2 AND listener_id = $3 AND event_name = $4`,
      [ownerId, emitterId, listenerId, eventName],
    );
    if (!rows[0]) throw new Error('the subscription was removed while it was made');
    return rows[0];
  }

  /** Makes those of an emitter's subscriptions that are missing. */
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
    const { rows } = await this.database.query<Subscription>(`SELECT ${COLUMNS} FROM subscription WHERE owner_id = $1 ORDER BY id DESC`, [
      ownerId,
    ]);
    return rows;
  }

  /** Removes what bears these names, and answers it. */
  async delete(ownerId: UserId, emitterId: string, listenerId: string, eventName: string): Promise<Subscription[]> {
    const { rows } = await this.database.query<Subscription>(
      `DELETE FROM subscription WHERE owner_id = $1 AND emitter_id = $2 AND listener_id = $3 AND event_name = $4 RETURNING ${COLUMNS}`,
      [ownerId, emitterId, listenerId, eventName],
    );
    return rows;
  }

  /** Removes all that names this emitter, be it as what emits or as what listens. */
  async deleteOf(transaction: Transaction, ownerId: UserId, id: string): Promise<void> {
    await transaction.query('DELETE FROM subscription WHERE owner_id = $1 AND (emitter_id = $2 OR listener_id = $2)', [ownerId, id]);
    await transaction.query('DELETE FROM auto_subscription WHERE owner_id = $1 AND listener_id = $2', [ownerId, id]);
  }

  /** Keeps an emitter from being deleted until the transaction ends. False when the owner has no such emitter. */
  async holdEmitter(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM emitter WHERE owner_id = $1 AND id = $2 AND NOT deleted FOR SHARE', [
      ownerId,
      id,
    ]);
    return rowCount === 1;
  }
}
