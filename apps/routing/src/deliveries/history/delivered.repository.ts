import { Injectable } from '@nestjs/common';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import { Database, type Transaction } from '#database';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { Delivered } from './delivered.entity.js';
import type { Attempt } from '../delivery.js';

/** A delivery that succeeded. */
export interface DeliveredEntry {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  attempts: Attempt[];
}

/** The number of rows that a webhook gets before surplus ones are deleted. */
const TRIM_AFTER_ROWS = 20;

/** Deletes what is listed of a deleted webhook. */
export async function deleteDelivered(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.rows(Delivered).delete({ webhook_id: webhookId });
}

/** The only writer of the table `delivered`: the newest successful deliveries, one row per webhook and flush. SQL: one statement for all webhooks of a flush. */
@Injectable()
export class DeliveredRepository {
  private readonly sinceTrim = new Map<WebhookId, number>();

  constructor(
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
  ) {}

  /** Adds entries and deletes surplus ones: at least `kept` remain. A receiver that responded is not failing. */
  async add(entries: Map<WebhookId, DeliveredEntry[]>, kept: number): Promise<void> {
    const ids = [...entries.keys()];
    await this.database.query(
      `INSERT INTO delivered (webhook_id, count, deliveries)
       SELECT webhook.id, added.count, added.deliveries
       FROM unnest($1::text[], $2::integer[], $3::bytea[]) AS added (webhook_id, count, deliveries)
       -- not for a deleted webhook: nothing would delete them
       JOIN webhook ON webhook.id = added.webhook_id
       FOR KEY SHARE OF webhook`,
      [ids, ids.map((id) => entries.get(id)?.length), ids.map((id) => Buffer.from(JSON.stringify(entries.get(id))))],
    );
    await this.webhooks.markResponding(ids);
    const full = ids.filter((id) => this.isFull(id, entries.get(id)?.length ?? 0, kept));
    if (full.length > 0) await this.trim(full, kept);
  }

  /** Newest first. */
  async list(ownerId: UserId, webhookId: WebhookId): Promise<DeliveredEntry[]> {
    const { rows } = await this.database.query<{ deliveries: Buffer }>(
      `SELECT deliveries FROM delivered JOIN webhook ON webhook.id = webhook_id WHERE owner_id = $1 AND webhook_id = $2`,
      [ownerId, webhookId],
    );
    return rows.flatMap(({ deliveries }) => JSON.parse(deliveries.toString('utf8')) as DeliveredEntry[]);
  }

  private isFull(id: WebhookId, added: number, kept: number): boolean {
    const rows = (this.sinceTrim.get(id) ?? 0) + 1;
    const full = rows >= TRIM_AFTER_ROWS || added >= kept;
    if (full) this.sinceTrim.delete(id);
    else this.sinceTrim.set(id, rows);
    return full;
  }

  private async trim(ids: WebhookId[], kept: number): Promise<void> {
    await this.database.query(
      `DELETE FROM delivered USING (
         SELECT webhook_id, id, sum(count) OVER (PARTITION BY webhook_id ORDER BY id DESC) - count AS newer FROM delivered WHERE webhook_id = ANY($1)
       ) AS summed
       WHERE newer >= $2 AND delivered.webhook_id = summed.webhook_id AND delivered.id = summed.id`,
      [ids, kept],
    );
  }
}
