import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT } from './column-types.js';
import { Migration } from './migration.js';

/** A number that only grows. If it is lower than before, the database was restored to an older state. */
@Entity('restore_tick')
export class RestoreTick {
  @PrimaryColumn('boolean', { default: true })
  only_row!: boolean;

  @Column('bigint')
  ticks!: number;
}

/** Where a consumer group was in a partition: its effects up to there are in the database. */
@Entity('consumer_position')
export class ConsumerPosition {
  @PrimaryColumn(BYTEWISE_TEXT)
  consumer_group!: string;

  @PrimaryColumn(BYTEWISE_TEXT)
  topic!: string;

  @PrimaryColumn('integer')
  partition!: number;

  @Column('bigint')
  next_offset!: number;

  @Column('bigint')
  last_ms!: number;

  /** The timestamp of the record below `next_offset`: it identifies the log. */
  @Column('bigint', { nullable: true })
  record_ms!: number | null;
}

export class CreateRestores1795305600008 extends Migration {
  readonly sql = `
    CREATE TABLE restore_tick (
      only_row boolean PRIMARY KEY DEFAULT true,
      ticks    bigint NOT NULL
    ) WITH (fillfactor = 10);
    CREATE TABLE consumer_position (
      consumer_group text COLLATE "C" NOT NULL,
      topic          text COLLATE "C" NOT NULL,
      partition      integer NOT NULL,
      next_offset    bigint NOT NULL,
      last_ms        bigint NOT NULL,
      record_ms      bigint,
      PRIMARY KEY (consumer_group, topic, partition)
    ) WITH (fillfactor = 10);`;
}
