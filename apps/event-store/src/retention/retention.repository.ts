import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { Database, type Session } from '#database';
import { DeletedRangeRow } from '../append/deleted-range.entity.js';
import { WithdrawnEmitRow } from '../withdrawn/withdrawn-emit.entity.js';

/** An emit waits a year at most, and the runtime may come late. */
const WITHDRAWN_MS = 400 * 24 * 3_600_000;

@Injectable()
export class RetentionRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(WithdrawnEmitRow) private readonly withdrawn: Repository<WithdrawnEmitRow>,
  ) {}

  /** The ids of emitters of which something is stored, in their order, after the given one. */
  async emittersAfter(emitterId: string, limit: number): Promise<string[]> {
    const { rows } = await this.database.query<{ emitter_id: string }>({
      name: 'emitters-after',
      // SQL, from one emitter to the next: DISTINCT would read every event
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

  /** Removes the emitters' events that the log took before `ms`; returns how many. Prepared SQL: each sweep walks all emitters. */
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

  /** Forgets deletions of events that have left the log long ago. */
  async forgetDeletions(): Promise<void> {
    await this.database.rows(DeletedRangeRow).delete({ deleted_at: LessThan(new Date(Date.now() - WITHDRAWN_MS)) });
  }

  /** Forgets the withdrawn emits that the runtime no longer looks up. */
  async forgetWithdrawn(): Promise<void> {
    await this.withdrawn.delete({ withdrawn_at: LessThan(new Date(Date.now() - WITHDRAWN_MS)) });
  }
}
