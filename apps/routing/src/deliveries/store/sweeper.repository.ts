import { Injectable } from '@nestjs/common';
import type { EmitterId, WebhookId } from '#contracts';
import { Database } from '#database';
import type { Delivery } from '../delivery.js';

/** What is done in one statement: a million rows at once would hold their locks for too long. */
const AT_ONCE = 5000;

interface ExpiredRow {
  webhook_id: WebhookId;
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  emit_id: string;
  body: Buffer;
}

/** SQL: range deletes and updates by SKIP LOCKED. */
@Injectable()
export class SweeperRepository {
  constructor(private readonly database: Database) {}

  /** Gives up what has been parked for longer than the schedule lasts. Answers how many, and the newest of each webhook. */
  async expire(olderThanMs: number): Promise<{ count: number; examples: Delivery[] }> {
    const { rows } = await this.database.query<ExpiredRow & { count: number }>(
      `WITH expired AS (
         UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now()
         WHERE (webhook_id, ms, seq) IN (
           SELECT webhook_id, ms, seq FROM parked_delivery
           WHERE due_at IS NOT NULL AND parked_at < now() - $1 * interval '1 ms' AND coalesce(in_flight_until, '-infinity') < now()
           LIMIT $2 FOR UPDATE SKIP LOCKED
         )
         RETURNING webhook_id, ms, seq, emitter_id, stream, emit_id, body
       )
       SELECT DISTINCT ON (webhook_id) *, (SELECT count(*)::int FROM expired) AS count FROM expired ORDER BY webhook_id, ms DESC, seq DESC`,
      [olderThanMs, AT_ONCE],
    );
    const examples = rows.map(({ webhook_id, ms, seq, emitter_id, stream, emit_id, body }) => ({
      webhookId: webhook_id,
      place: { ms, seq },
      emitterId: emitter_id,
      stream,
      emitId: emit_id,
      json: body,
    }));
    return { count: rows[0]?.count ?? 0, examples };
  }

  /** Removes what was given up so long ago. Answers how many. */
  async forget(olderThanMs: number): Promise<number> {
    const { rowCount } = await this.database.query(
      `DELETE FROM parked_delivery WHERE (webhook_id, ms, seq) IN (
         SELECT webhook_id, ms, seq FROM parked_delivery WHERE due_at IS NULL AND failed_at < now() - $1 * interval '1 ms' LIMIT $2 FOR UPDATE SKIP LOCKED
       )`,
      [olderThanMs, AT_ONCE],
    );
    return rowCount ?? 0;
  }
}
