import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT, Migration, type SchemaPart } from '#database';

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
