import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { Stat } from './stat.entity.js';

/** The only writer of the table `stat`. SQL: one statement adds the counts of all subjects. */
@Injectable()
export class StatsRepository {
  constructor(private readonly database: Database) {}

  /** Adds to the rows; each key occurs once. */
  async add(rows: Stat[]): Promise<void> {
    await this.database.query({
      name: 'stats-add',
      // ordered, so that two replicas do not wait for each other in a circle
      text: `INSERT INTO stat AS kept (subject_id, width_s, start, events, ended, failed, durations)
             SELECT subject_id, width_s, start, events, ended, failed, durations::bigint[]
             FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
               AS added (subject_id, width_s, start, events, ended, failed, durations)
             ORDER BY subject_id COLLATE "C", width_s, start
             ON CONFLICT (subject_id, width_s, start) DO UPDATE SET
               events = kept.events + excluded.events,
               ended = kept.ended + excluded.ended,
               failed = kept.failed + excluded.failed,
               durations = coalesce((
                 SELECT array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY slot)
                 FROM unnest(kept.durations, excluded.durations) WITH ORDINALITY AS both_of (a, b, slot)), '{}')`,
      values: [
        rows.map(({ subject_id }) => subject_id),
        rows.map(({ width_s }) => width_s),
        rows.map(({ start }) => start),
        rows.map(({ events }) => events),
        rows.map(({ ended }) => ended),
        rows.map(({ failed }) => failed),
        rows.map(({ durations }) => `{${durations.join()}}`),
      ],
    });
  }

  async list(subjectId: string, widthS: number, fromS: number): Promise<Stat[]> {
    const { rows } = await this.database.query<Stat>({
      name: 'stats-list',
      text: 'SELECT * FROM stat WHERE subject_id = $1 AND width_s = $2 AND start >= $3',
      values: [subjectId, widthS, fromS],
    });
    return rows;
  }

  async deleteBefore(widthS: number, beforeS: number): Promise<void> {
    await this.database.query('DELETE FROM stat WHERE width_s = $1 AND start < $2', [widthS, beforeS]);
  }
}
