import { Injectable } from '@nestjs/common';
import { Database, type Session } from '#database';

/** An emit waits a year at most, and the runtime may come late. */
const WITHDRAWN_DAYS = 400;

@Injectable()
export class RetentionRepository {
  constructor(private readonly database: Database) {}

  /** The ids of emitters of which something is stored, in their order, after the given one. */
  async emittersAfter(emitterId: string, limit: number): Promise<string[]> {
    const { rows } = await this.database.query<{ emitter_id: string }>({
      name: 'emitters-after',
      // from one emitter to the next: DISTINCT would read every event
      text: `WITH RECURSIVE walk AS (
               (SELECT emitter_id FROM event WHERE emitter_id > $1 ORDER BY emitter_id LIMIT 1)
               UNION ALL
               SELECT (SELECT emitter_id FROM event WHERE emitter_id > walk.emitter_id ORDER BY emitter_id LIMIT 1)
               FROM walk WHERE walk.emitter_id IS NOT NULL
             )
             SELECT emitter_id FROM walk WHERE emitter_id IS NOT NULL LIMIT $2`,
      values: [emitterId, limit],
    });
    return rows.map((row) => row.emitter_id);
  }

  /** Removes the emitters' events that the log took before `ms`; returns how many. */
  async removeBefore(ms: number, emitterIds: string[], session: Session = this.database): Promise<number> {
    const { rowCount } = await session.query({
      name: 'events-remove-before',
      text: 'DELETE FROM event WHERE emitter_id = ANY ($1) AND ms < $2',
      values: [emitterIds, ms],
    });
    return rowCount ?? 0;
  }

  /** Removes all events of an emitter; returns how many. What was withdrawn stays: the runtime may hear later than we that the emitter is gone. */
  removeAll(emitterIds: string[], session: Session = this.database): Promise<number> {
    return this.removeBefore(Number.MAX_SAFE_INTEGER, emitterIds, session);
  }

  /** Forgets the withdrawn emits of which nobody asks any more. */
  async forgetWithdrawn(): Promise<void> {
    await this.database.query("DELETE FROM withdrawn_emit WHERE withdrawn_at < now() - $1 * interval '1 day'", [WITHDRAWN_DAYS]);
  }
}
