import { Injectable } from '@nestjs/common';
import type { EmitterId, WebhookId } from '#contracts';
import { Database } from '#database';
import type { Attempt, Delivery } from './delivery.js';
import type { TargetRow } from './target.js';

export interface ParkedDelivery {
  delivery: Delivery;
  attempts: Attempt[];
}

interface ParkedRow {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  emit_id: string;
  time: string | null;
  body: Buffer;
  attempts: Attempt[];
}

/** What is parked, and the webhooks as deliveries need them: whoever owns them. */
@Injectable()
export class DeliveriesRepository {
  constructor(private readonly database: Database) {}

  async findTargets(ids: WebhookId[]): Promise<TargetRow[]> {
    const { rows } = await this.database.query<TargetRow>({
      name: 'delivery-targets',
      text: 'SELECT id, owner_id, version, active, url, secret, previous_secret, previous_secret_expires_at FROM webhook WHERE id = ANY($1)',
      values: [ids],
    });
    return rows;
  }

  /** Keeps the delivery until it's due again; nothing when its webhook is gone. `pauseMs` null: for good. */
  async park({ delivery, attempts }: ParkedDelivery, pauseMs: number | null): Promise<void> {
    const { webhookId, place, emitterId, stream, emitId, time, json } = delivery;
    await this.database.query({
      name: 'delivery-park',
      text: `
        WITH parked AS (
          INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, body, attempts, due_at)
          SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, now() + $10 * interval '1 ms'
          -- locked: what is parked while its webhook is removed would stay behind
          FROM webhook WHERE id = $1 FOR KEY SHARE
          ON CONFLICT (webhook_id, ms, seq) DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at
          RETURNING webhook_id, due_at
        )
        INSERT INTO backlog (webhook_id, next_due) SELECT webhook_id, due_at FROM parked WHERE due_at IS NOT NULL
        ON CONFLICT (webhook_id) DO UPDATE SET next_due = least(backlog.next_due, excluded.next_due)`,
      values: [webhookId, place.ms, place.seq, emitterId, stream, emitId, time ?? null, json, JSON.stringify(attempts), pauseMs],
    });
  }

  /** Webhooks of which something is due: ours for a while. */
  async claim(limit: number, leaseMs: number): Promise<WebhookId[]> {
    const { rows } = await this.database.query<{ webhook_id: WebhookId }>({
      name: 'backlog-claim',
      text: `UPDATE backlog SET next_due = now() + $2 * interval '1 ms'
             WHERE webhook_id IN (SELECT webhook_id FROM backlog WHERE next_due <= now() ORDER BY next_due LIMIT $1 FOR UPDATE SKIP LOCKED)
             RETURNING webhook_id`,
      values: [limit, leaseMs],
    });
    return rows.map(({ webhook_id }) => webhook_id);
  }

  async due(webhookId: WebhookId, limit: number): Promise<ParkedDelivery[]> {
    const { rows } = await this.database.query<ParkedRow>({
      name: 'delivery-due',
      text: `SELECT ms, seq, emitter_id, stream, emit_id, time, body, attempts FROM parked_delivery
             WHERE webhook_id = $1 AND due_at <= now() ORDER BY due_at LIMIT $2`,
      values: [webhookId, limit],
    });
    return rows.map(({ ms, seq, emitter_id, stream, emit_id, time, body, attempts }) => ({
      delivery: { webhookId, place: { ms, seq }, emitterId: emitter_id, stream, emitId: emit_id, time: time ?? undefined, json: body },
      attempts,
    }));
  }

  async unpark({ webhookId, place }: Delivery): Promise<void> {
    await this.database.query({
      name: 'delivery-unpark',
      text: 'DELETE FROM parked_delivery WHERE webhook_id = $1 AND ms = $2 AND seq = $3',
      values: [webhookId, place.ms, place.seq],
    });
  }

  /** Says when the webhook's next delivery is due, or that none is parked. */
  async release(webhookId: WebhookId): Promise<void> {
    await this.database.transaction(async (transaction) => {
      // with the row locked the next statement sees whatever was parked before, and who parks after it makes the row anew
      await transaction.query('SELECT FROM backlog WHERE webhook_id = $1 FOR UPDATE', [webhookId]);
      const { rows } = await transaction.query<{ next_due: Date | null }>(
        'SELECT min(due_at) AS next_due FROM parked_delivery WHERE webhook_id = $1',
        [webhookId],
      );
      const nextDue = rows[0]?.next_due ?? null;
      if (nextDue === null) await transaction.query('DELETE FROM backlog WHERE webhook_id = $1', [webhookId]);
      else await transaction.query('UPDATE backlog SET next_due = $2 WHERE webhook_id = $1', [webhookId, nextDue]);
    });
  }

  /** Switches a webhook off. */
  async disable(webhookId: WebhookId): Promise<void> {
    await this.database.query('UPDATE webhook SET active = false, version = version + 1, updated_at = now() WHERE id = $1 AND active', [
      webhookId,
    ]);
  }
}
