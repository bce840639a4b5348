import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT } from './column-types.js';
import { Migration } from './migrate.js';

/**
 * The time for which one process has used the database, in ms. Each commit to Kafka contains a time that was in a period when it was made. If no period
 * contains it, the database was restored to an older state.
 */
@Entity('database_period')
export class DatabasePeriod {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('bigint')
  from_ms!: number;

  @Column('bigint')
  to_ms!: number;
}

/** The position of a consumer group in a partition. Its effects up to there are in the database. */
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
    CREATE TABLE database_period (
      id      uuid PRIMARY KEY,
      from_ms bigint NOT NULL,
      to_ms   bigint NOT NULL
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
