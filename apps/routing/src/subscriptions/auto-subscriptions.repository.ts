import { Injectable } from '@nestjs/common';
import { type AutoSubscription, newId, type UserId } from '#contracts';
import { Database, type Transaction } from '#database';

const COLUMNS = 'id, event_name, listener_id';
/** The advisory lock of an account's auto-subscriptions. */
const TURN = "hashtext('auto-subscription'), hashtext($1)";

@Injectable()
export class AutoSubscriptionsRepository {
  constructor(private readonly database: Database) {}

  /** Makes the auto-subscription, or finds the one of the same listener and event name. */
  async create(transaction: Transaction, ownerId: UserId, listenerId: string, eventName: string): Promise<AutoSubscription> {
    await transaction.query(`SELECT pg_advisory_xact_lock(${TURN})`, [ownerId]);
    await transaction.query(
      // the clock is read when it's this transaction's turn: a new emitter is older than this time, or sees this row.
      // It's the database server's clock, by which the catalog dates emitters too
      `INSERT INTO auto_subscription (id, owner_id, listener_id, event_name, created_at_ms)
       VALUES ($1, $2, $3, $4, floor(extract(epoch FROM clock_timestamp()) * 1000)) ON CONFLICT (owner_id, event_name, listener_id) DO NOTHING`,
      [newId('autoSubscription'), ownerId, listenerId, eventName],
    );
    const { rows } = await transaction.query<AutoSubscription>(
      `SELECT ${COLUMNS} FROM auto_subscription WHERE owner_id = $1 AND listener_id = $2 AND event_name = $3`,
      [ownerId, listenerId, eventName],
    );
    if (!rows[0]) throw new Error('the auto-subscription was removed while it was made');
    return rows[0];
  }

  async list(ownerId: UserId): Promise<AutoSubscription[]> {
    const { rows } = await this.database.query<AutoSubscription>(
      `SELECT ${COLUMNS} FROM auto_subscription WHERE owner_id = $1 ORDER BY id DESC`,
      [ownerId],
    );
    return rows;
  }

  async delete(ownerId: UserId, listenerId: string, eventName: string): Promise<AutoSubscription[]> {
    const { rows } = await this.database.query<AutoSubscription>(
      `DELETE FROM auto_subscription WHERE owner_id = $1 AND listener_id = $2 AND event_name = $3 RETURNING ${COLUMNS}`,
      [ownerId, listenerId, eventName],
    );
    return rows;
  }

  /**
   * Those that cover an emitter which came to exist at this time. Who learns of an emitter and who makes an auto-subscription take turns: none
   * falls between the two.
   */
  async covering(transaction: Transaction, ownerId: UserId, createdAtMs: number): Promise<AutoSubscription[]> {
    // with other emitters, but not with an auto-subscription that is being made
    await transaction.query({ name: 'auto-cover-turn', text: `SELECT pg_advisory_xact_lock_shared(${TURN})`, values: [ownerId] });
    const { rows } = await transaction.query<AutoSubscription>({
      name: 'auto-covering',
      text: `SELECT ${COLUMNS} FROM auto_subscription WHERE owner_id = $1 AND created_at_ms <= $2`,
      values: [ownerId, createdAtMs],
    });
    return rows;
  }

  /** Whether the emitter came to exist anew: then it's dated so from now on. */
  async revived(transaction: Transaction, ownerId: UserId, emitterId: string, createdAtMs: number): Promise<boolean> {
    const { rowCount } = await transaction.query(
      'UPDATE emitter SET created_at_ms = $3 WHERE owner_id = $1 AND id = $2 AND created_at_ms < $3',
      [ownerId, emitterId, createdAtMs],
    );
    return rowCount === 1;
  }
}
