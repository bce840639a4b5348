import { Injectable } from '@nestjs/common';
import type { UserId, WebhookId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Transaction } from '#database';
import type { SecretRow, WebhookRow } from './webhook.entity.js';

const COLUMNS = 'id, owner_id, name, description, url, active, rate_limit, created_at, updated_at';
const SECRET = 'secret, CASE WHEN previous_secret_expires_at > now() THEN previous_secret_expires_at END AS previous_secret_expires_at';

/** What a change sets; what is absent stays. */
export type WebhookChange = Partial<Pick<WebhookRow, 'name' | 'description' | 'url' | 'active' | 'rate_limit'>>;

@Injectable()
export class WebhooksRepository {
  constructor(private readonly database: Database) {}

  /** Makes the webhook, or finds that it was made already. Undefined when its id is somebody else's. */
  async create(
    ownerId: UserId,
    {
      id,
      name,
      description,
      url,
      rate_limit,
      secret,
    }: Omit<WebhookRow, 'owner_id' | 'active' | 'created_at' | 'updated_at'> & { secret: string },
  ): Promise<WebhookRow | undefined> {
    await this.database.transaction(async (transaction) => {
      await transaction.query(
        `INSERT INTO webhook (id, owner_id, name, description, url, rate_limit, spilled, secret)
         VALUES ($1, $2, $3, $4, $5, $6, $6::integer IS NOT NULL, $7) ON CONFLICT (id) DO NOTHING`,
        [id, ownerId, name, description, url, rate_limit, secret],
      );
      await this.lookAgain(transaction, id);
    });
    return this.find(ownerId, id);
  }

  async find(ownerId: UserId, id: WebhookId): Promise<WebhookRow | undefined> {
    const { rows } = await this.database.query<WebhookRow>(`SELECT ${COLUMNS} FROM webhook WHERE owner_id = $1 AND id = $2`, [ownerId, id]);
    return rows[0];
  }

  list(ownerId: UserId, page: KeysetPage): Promise<{ rows: WebhookRow[]; total: number }> {
    return readKeysetPage<WebhookRow>(
      this.database,
      { select: `SELECT ${COLUMNS} FROM webhook`, where: 'owner_id = $1', values: [ownerId], id: 'id' },
      page,
    );
  }

  async update(ownerId: UserId, id: WebhookId, change: WebhookChange): Promise<WebhookRow | undefined> {
    const set = (Object.keys(change) as (keyof WebhookChange)[]).map((column, index) => `${column} = $${index + 3}, `);
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<WebhookRow>(
        `UPDATE webhook SET ${set.join('')}updated_at = now(), version = version + 1 WHERE owner_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
        [ownerId, id, ...Object.values(change)],
      );
      const row = rows[0];
      if (!row) return undefined;
      // one replica keeps the rate: all goes through the backlog, which one replica at a time has
      if (row.rate_limit !== null) await transaction.query('UPDATE webhook SET spilled = true WHERE id = $1', [id]);
      if (change.active) await transaction.query('UPDATE webhook SET failing_since = NULL WHERE id = $1', [id]);
      if (change.url !== undefined || change.active || change.rate_limit !== undefined) await this.lookAgain(transaction, id);
      return row;
    });
  }

  /** Removes the webhook and all that hangs on it. False when the owner has no such webhook. */
  async delete(ownerId: UserId, id: WebhookId): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query('DELETE FROM webhook WHERE owner_id = $1 AND id = $2', [ownerId, id]);
      if (rowCount === 0) return false;
      await transaction.query('DELETE FROM subscription WHERE listener_id = $1', [id]);
      await transaction.query('DELETE FROM auto_subscription WHERE listener_id = $1', [id]);
      await transaction.query('DELETE FROM parked_delivery WHERE webhook_id = $1', [id]);
      await transaction.query('DELETE FROM backlog WHERE webhook_id = $1', [id]);
      await transaction.query('DELETE FROM delivered WHERE webhook_id = $1', [id]);
      return true;
    });
  }

  async findSecret(ownerId: UserId, id: WebhookId): Promise<SecretRow | undefined> {
    const { rows } = await this.database.query<SecretRow>(`SELECT ${SECRET} FROM webhook WHERE owner_id = $1 AND id = $2`, [ownerId, id]);
    return rows[0];
  }

  /** Sets the secret and keeps the old one for a while, unless this rotation was carried out already. */
  async rotateSecret(ownerId: UserId, id: WebhookId, secret: string, rotationId: string, keepMs: number): Promise<SecretRow | undefined> {
    await this.database.query(
      `UPDATE webhook SET secret = $3, previous_secret = secret, previous_secret_expires_at = now() + $5 * interval '1 ms', rotation_id = $4,
         updated_at = now(), version = version + 1
       WHERE owner_id = $1 AND id = $2 AND rotation_id IS DISTINCT FROM $4`,
      [ownerId, id, secret, rotationId, keepMs],
    );
    return this.findSecret(ownerId, id);
  }

  /** Keeps the webhook from being removed until the transaction ends. False when the owner has no such webhook. */
  async hold(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM webhook WHERE owner_id = $1 AND id = $2 FOR KEY SHARE', [ownerId, id]);
    return rowCount === 1;
  }

  /** What waits for the webhook may have a better chance now. One that is spilled has a backlog, be it an empty one. */
  private async lookAgain(transaction: Transaction, id: WebhookId): Promise<void> {
    await transaction.query(
      `INSERT INTO backlog (webhook_id, next_due) SELECT id, now() FROM webhook
       WHERE id = $1 AND (spilled OR EXISTS (SELECT FROM backlog WHERE webhook_id = $1))
       ON CONFLICT (webhook_id) DO UPDATE SET next_due = now(), failed_probes = NULL`,
      [id],
    );
  }
}
