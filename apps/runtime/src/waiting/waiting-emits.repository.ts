import { Injectable } from '@nestjs/common';
import { EVENTS_TOPIC } from '#contracts';
import { Database } from '#database';
import { addToOutbox } from '#outbox';

/** Emits that wait for their `delivery_ts`. */
@Injectable()
export class WaitingEmitsRepository {
  constructor(private readonly database: Database) {}

  /** Moves what is due into the outbox; answers how many there were. */
  async release(limit: number): Promise<number> {
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ source_id: string; headers: Record<string, string>; value: Buffer }>(
        `DELETE FROM waiting_emit WHERE emit_id IN (SELECT emit_id FROM waiting_emit WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING source_id, headers, value, due_at`,
        [limit],
      );
      await addToOutbox(
        transaction,
        rows.map(({ source_id, headers, value }) => ({ topic: EVENTS_TOPIC, key: source_id, headers, value })),
      );
      return rows.length;
    });
  }
}
