import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT } from '#database';

/** The position up to which a partition of the log is stored, and its clock there. */
@Entity('event_progress')
export class EventProgress {
  @PrimaryColumn(BYTEWISE_TEXT)
  topic!: string;

  @PrimaryColumn('integer')
  partition!: number;

  @Column('bigint', { default: 0 })
  next_offset!: number;

  @Column('bigint', { default: 0 })
  last_ms!: number;

  /** The timestamp of the record below `next_offset`: it identifies the log. */
  @Column('bigint', { nullable: true })
  record_ms!: number | null;
}
