import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT, Database, Migration, type SchemaPart } from '#database';

/** The counts of a source, workflow or webhook in one minute or hour. */
@Entity('stat')
@Index('stat_age', ['width_s', 'start'])
export class Stat {
  @PrimaryColumn(BYTEWISE_TEXT)
  subject_id!: string;

  /** 60 or 3600. */
  @PrimaryColumn('integer')
  width_s!: number;

  /** Unix seconds, a multiple of the width. */
  @PrimaryColumn('bigint')
  start!: number;

  @Column('bigint')
  events!: number;

  /** Runs of a source; attempts to deliver to a webhook. */
  @Column('bigint')
  ended!: number;

  /** Those of them that failed. */
  @Column('bigint')
  failed!: number;

  /** How many of them took how long: counts per slot of `stats.ts`. */
  @Column('bigint', { array: true })
  durations!: number[];
}

class CreateStats1795305600009 extends Migration {
  readonly sql = `
    CREATE TABLE stat (
      subject_id text COLLATE "C" NOT NULL,
      width_s    integer NOT NULL,
      start      bigint NOT NULL,
      events     bigint NOT NULL,
      ended      bigint NOT NULL,
      failed     bigint NOT NULL,
      durations  bigint[] NOT NULL,
      PRIMARY KEY (subject_id, width_s, start)
    ) WITH (fillfactor = 50);
    -- "old rows"
    CREATE INDEX stat_age ON stat (width_s, start);`;
}

/** The table of the statistics, for the schema of an app that has one. */
export const statsSchema: SchemaPart = { entities: [Stat], migrations: [CreateStats1795305600009] };

/** SQL that deletes the counts of a deleted source, workflow or webhook ($1). Counts that a replica has not written yet follow, and go by age. */
export const DELETE_STATS = 'DELETE FROM stat WHERE subject_id = $1';

/** The only writer of the table `stat`. SQL: one statement adds the counts of all subjects. */
@Injectable()
export class StatsRepository {
  constructor(private readonly database: Database) {}

  /**
   * Adds to the rows; each key occurs once. In a transaction: the server may still run a statement that has waited too long for a lock, after the caller has
   * repeated it. Without a commit, it adds nothing.
   */
  async add(rows: Stat[]): Promise<void> {
    const statement = {
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
    };
    await this.database.transaction((transaction) => transaction.query(statement));
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
