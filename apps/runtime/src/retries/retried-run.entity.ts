import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { RunRequest, SourceId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** A run for an event that has failed and will be repeated; deleted when an attempt succeeds, or the last one has failed. */
@Entity('retried_run')
@Index('retried_run_due', ['due_at'])
@Index('retried_run_source', ['source_id'])
export class RetriedRun {
  @PrimaryColumn(BYTEWISE_TEXT)
  first_run_id!: string;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  /** When the next attempt is requested; while it is in progress: when it is requested again. */
  @Column('timestamptz')
  due_at!: Date;

  /** The next attempt. */
  @Column('jsonb')
  request!: RunRequest;
}
