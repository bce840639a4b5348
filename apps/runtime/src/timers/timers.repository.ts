import { Injectable } from '@nestjs/common';
import type { Schedule, SourceId, UserId } from '#contracts';
import { Database, type Transaction } from '#database';

export interface DueTimer {
  source_id: SourceId;
  owner_id: UserId;
  prop: string;
  schedule: Schedule;
  next_run_at: Date;
}

@Injectable()
export class TimersRepository {
  constructor(private readonly database: Database) {}

  /** Hands due timers to `tick`, locked, and writes the next tick that it answers; null removes the timer. Answers how many there were. */
  async claimDue(limit: number, tick: (transaction: Transaction, due: DueTimer[]) => Promise<(Date | null)[]>): Promise<number> {
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<DueTimer>({
        name: 'timers-due',
        text: `SELECT t.source_id, d.owner_id, t.prop, t.schedule, t.next_run_at FROM timer t JOIN deployment d USING (source_id)
               WHERE t.next_run_at <= now() ORDER BY t.next_run_at LIMIT $1 FOR UPDATE OF t SKIP LOCKED`,
        values: [limit],
      });
      if (rows.length === 0) return 0;
      const next = await tick(transaction, rows);
      await transaction.query({
        name: 'timers-next',
        text: `UPDATE timer t SET next_run_at = coalesce(n.at, 'infinity') FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS n (source_id, prop, at)
               WHERE t.source_id = n.source_id AND t.prop = n.prop`,
        values: [rows.map(({ source_id }) => source_id), rows.map(({ prop }) => prop), next],
      });
      return rows.length;
    });
  }

  /** Milliseconds until the next timer is due; null without timers. */
  async msToNext(): Promise<number | null> {
    const { rows } = await this.database.query<{ ms: number | null }>({
      name: 'timers-first',
      text: "SELECT extract(epoch FROM next_run_at - now())::float8 * 1000 AS ms FROM timer WHERE next_run_at < 'infinity' ORDER BY next_run_at LIMIT 1",
      values: [],
    });
    return rows[0]?.ms ?? null;
  }
}
