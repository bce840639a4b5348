import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { SluiceError, type UserId, type WebhookId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Transaction, UNIQUE_VIOLATION } from '#database';
import { Delivered } from '../deliveries/delivered.entity.js';
import { Backlog, ParkedDelivery } from '../deliveries/parked-delivery.entity.js';
import { AutoSubscriptionRow, SubscriptionRow } from '../subscriptions/subscription.entity.js';
import { type SecretRow, WebhookRow } from './webhook.entity.js';

const SECRET = 'secret, CASE WHEN previous_secret_expires_at > now() THEN previous_secret_expires_at END AS previous_secret_expires_at';

/** What a change sets; what is absent stays. */
export type WebhookChange = Partial<Pick<WebhookRow, 'name' | 'description' | 'url' | 'active' | 'rate_limit' | 'external_id'>>;

@Injectable()
export class WebhooksRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(WebhookRow) private readonly webhooks: Repository<WebhookRow>,
  ) {}

  /**
   * Creates the webhook, or finds that it was created already. Undefined when its id is another account's. Throws a conflict when its external id is
   * taken.
   */
  async create(
    ownerId: UserId,
    webhook: Pick<WebhookRow, 'id' | 'name' | 'description' | 'url' | 'rate_limit' | 'external_id' | 'secret'>,
  ): Promise<WebhookRow | undefined> {
    await this.database.transaction(async (transaction) => {
      await transaction
        .rows(WebhookRow)
        .createQueryBuilder()
        .insert()
        .values({ ...webhook, owner_id: ownerId, spilled: webhook.rate_limit !== null })
        .orIgnore()
        .execute();
      await this.lookAgain(transaction, webhook.id);
    });
    const found = await this.find(ownerId, webhook.id);
    if (!found && webhook.external_id !== null && (await this.webhooks.existsBy({ owner_id: ownerId, external_id: webhook.external_id })))
      throw externalIdTaken();
    return found;
  }

  async find(ownerId: UserId, id: WebhookId): Promise<WebhookRow | undefined> {
    return (await this.webhooks.findOneBy({ owner_id: ownerId, id })) ?? undefined;
  }

  list(ownerId: UserId, page: KeysetPage, externalId?: string): Promise<{ rows: WebhookRow[]; total: number }> {
    const owned = this.webhooks.createQueryBuilder('webhook').where('webhook.owner_id = :ownerId', { ownerId });
    if (externalId !== undefined) owned.andWhere('webhook.external_id = :externalId', { externalId });
    return readKeysetPage(owned, page);
  }

  /** Throws a conflict when the new external id is taken. */
  async update(ownerId: UserId, id: WebhookId, change: WebhookChange): Promise<WebhookRow | undefined> {
    try {
      return await this.tryUpdate(ownerId, id, change);
    } catch (error) {
      throw (error as { code?: string }).code === UNIQUE_VIOLATION ? externalIdTaken() : error;
    }
  }

  private tryUpdate(ownerId: UserId, id: WebhookId, change: WebhookChange): Promise<WebhookRow | undefined> {
    return this.database.transaction(async (transaction) => {
      const webhooks = transaction.rows(WebhookRow);
      const found = { owner_id: ownerId, id };
      const { affected } = await webhooks.update(found, { ...change, updated_at: () => 'now()', version: () => 'version + 1' });
      if (affected !== 1) return undefined;
      const row = await webhooks.findOneByOrFail(found);
      // one replica keeps the rate: everything goes through the backlog, which one replica at a time holds
      if (row.rate_limit !== null) await webhooks.update(found, { spilled: true });
      if (change.active) await webhooks.update(found, { failing_since: null });
      if (change.url !== undefined || change.active || change.rate_limit !== undefined) await this.lookAgain(transaction, id);
      return row;
    });
  }

  /** Deletes the webhook and everything that belongs to it. False when the owner has no such webhook. */
  async delete(ownerId: UserId, id: WebhookId): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { affected } = await transaction.rows(WebhookRow).delete({ owner_id: ownerId, id });
      if (affected !== 1) return false;
      await transaction.rows(SubscriptionRow).delete({ listener_id: id });
      await transaction.rows(AutoSubscriptionRow).delete({ listener_id: id });
      await transaction.rows(ParkedDelivery).delete({ webhook_id: id });
      await transaction.rows(Backlog).delete({ webhook_id: id });
      await transaction.rows(Delivered).delete({ webhook_id: id });
      return true;
    });
  }

  /** SQL: the database's clock decides whether the previous secret still signs. */
  async findSecret(ownerId: UserId, id: WebhookId): Promise<SecretRow | undefined> {
    const { rows } = await this.database.query<SecretRow>(`SELECT ${SECRET} FROM webhook WHERE owner_id = $1 AND id = $2`, [ownerId, id]);
    return rows[0];
  }

  /** Sets the secret and keeps the old one for a while, unless this rotation was carried out already. SQL, for the old secret and the clock. */
  async rotateSecret(ownerId: UserId, id: WebhookId, secret: string, rotationId: string, keepMs: number): Promise<SecretRow | undefined> {
    await this.database.query(
      `UPDATE webhook SET secret = $3, previous_secret = secret, previous_secret_expires_at = now() + $5 * interval '1 ms', rotation_id = $4,
         updated_at = now(), version = version + 1
       WHERE owner_id = $1 AND id = $2 AND rotation_id IS DISTINCT FROM $4`,
      [ownerId, id, secret, rotationId, keepMs],
    );
    return this.findSecret(ownerId, id);
  }

  /** Locks the webhook against its deletion until the transaction ends. False when the owner has no such webhook. */
  async hold(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM webhook WHERE owner_id = $1 AND id = $2 FOR KEY SHARE', [ownerId, id]);
    return rowCount === 1;
  }

  /** What waits for the webhook may have a better chance now. A spilled one has a backlog, even an empty one. SQL, for the conditions of the upsert. */
  private async lookAgain(transaction: Transaction, id: WebhookId): Promise<void> {
    await transaction.query(
      `INSERT INTO backlog (webhook_id, next_due) SELECT id, now() FROM webhook
       WHERE id = $1 AND (spilled OR EXISTS (SELECT FROM backlog WHERE webhook_id = $1))
       ON CONFLICT (webhook_id) DO UPDATE SET next_due = now(), failed_probes = NULL`,
      [id],
    );
  }
}

const externalIdTaken = (): SluiceError => new SluiceError('conflict', 'another of your webhooks has this external_id');
