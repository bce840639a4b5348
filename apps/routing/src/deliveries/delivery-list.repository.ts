import { Injectable } from '@nestjs/common';
import type { UserId, WebhookId } from '#contracts';
import type { EventPlace } from '#events';
import { Database } from '#database';
import type { ListedRow } from './delivery-view.js';

const COLUMNS = 'ms, seq, emitter_id, attempts, due_at';
/** Behind a failing endpoint a delivery waits at least for the next probe. */
const EXPECTED_AT = `CASE WHEN due_at IS NOT NULL THEN greatest(due_at, (SELECT next_due FROM backlog WHERE webhook_id = $2 AND failed_probes IS NOT NULL)) END`;
const OWNED = 'webhook_id = (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2)';
/** What is given up starts its schedule anew; it has been attempted, so nothing waits for it. */
const DUE_NOW = 'due_at = now(), failed_at = NULL, tries = CASE WHEN due_at IS NULL THEN 0 ELSE tries END, parked_at = now()';

/** Which part of a webhook's deliveries is wanted; both places are exclusive. */
export interface PlaceWindow {
  olderThan: EventPlace;
  newerThan: EventPlace;
  /** At which end of it the page begins. */
  from: 'newest' | 'oldest';
  limit: number;
}

/** What is parked, as its owner sees it. SQL: keyset pages over two columns, and changes that wake the backlog in the same statement. */
@Injectable()
export class DeliveryListRepository {
  constructor(private readonly database: Database) {}

  /** Newest first. */
  async list(ownerId: UserId, webhookId: WebhookId, { olderThan, newerThan, from, limit }: PlaceWindow): Promise<ListedRow[]> {
    const direction = from === 'newest' ? 'DESC' : 'ASC';
    const { rows } = await this.database.query<ListedRow>(
      `SELECT ms, seq, emitter_id, attempts, ${EXPECTED_AT} AS due_at FROM parked_delivery WHERE ${OWNED} AND (ms, seq) < ($3, $4) AND (ms, seq) > ($5, $6)
       ORDER BY ms ${direction}, seq ${direction} LIMIT $7`,
      [ownerId, webhookId, olderThan.ms, olderThan.seq, newerThan.ms, newerThan.seq, limit],
    );
    return from === 'newest' ? rows : rows.reverse();
  }

  async count(ownerId: UserId, webhookId: WebhookId): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(`SELECT count(*)::int AS count FROM parked_delivery WHERE ${OWNED}`, [
      ownerId,
      webhookId,
    ]);
    return rows[0]?.count ?? 0;
  }

  /** Makes a delivery due now. Undefined when it isn't parked. */
  async retry(ownerId: UserId, webhookId: WebhookId, { ms, seq }: EventPlace): Promise<ListedRow | undefined> {
    const { rows } = await this.database.query<ListedRow>(
      `WITH due AS (UPDATE parked_delivery SET ${DUE_NOW} WHERE ${OWNED} AND ms = $3 AND seq = $4 RETURNING webhook_id, ${COLUMNS}), woken AS (${wake('due')})
       SELECT ${COLUMNS} FROM due`,
      [ownerId, webhookId, ms, seq],
    );
    return rows[0];
  }

  /** Makes all that was given up since then due now; answers how many. */
  async recover(ownerId: UserId, webhookId: WebhookId, sinceMs: number): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(
      `WITH due AS (
         UPDATE parked_delivery SET ${DUE_NOW} WHERE ${OWNED} AND due_at IS NULL AND failed_at >= to_timestamp($3::float8 / 1000) RETURNING webhook_id
       ), woken AS (${wake('due')})
       SELECT count(*)::int AS count FROM due`,
      [ownerId, webhookId, sinceMs],
    );
    return rows[0]?.count ?? 0;
  }
}

/** A failing endpoint is tried at once too. */
const wake = (due: string): string =>
  `INSERT INTO backlog (webhook_id, next_due) SELECT DISTINCT webhook_id, now() FROM ${due} ON CONFLICT (webhook_id) DO UPDATE SET next_due = now()`;
