import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { type FinishedRun, type SourceId, unixSeconds } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** A run that has ended, as lists show it. */
@Entity('finished_run')
@Index('finished_run_id', ['run_id'])
export class FinishedRunRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn('bigint', { generated: 'identity', generatedIdentity: 'ALWAYS' })
  position!: number;

  @Column(BYTEWISE_TEXT)
  run_id!: string;

  @Column('text')
  trigger!: FinishedRun['trigger'];

  @Column('text')
  method!: FinishedRun['method'];

  @Column('text')
  status!: FinishedRun['status'];

  @Column('timestamptz')
  started_at!: Date;

  @Column('int')
  duration_ms!: number;

  @Column('int')
  emitted!: number;

  /** JSON as text, because the type json refuses characters that an error may contain. */
  @Column('text', { nullable: true })
  error!: string | null;
}

export const finishedRunOf = (row: FinishedRunRow): FinishedRun => ({
  id: row.run_id,
  trigger: row.trigger,
  method: row.method,
  status: row.status,
  started_at: unixSeconds(row.started_at),
  duration_ms: row.duration_ms,
  emitted: row.emitted,
  error: row.error === null ? null : (JSON.parse(row.error) as FinishedRun['error']),
});

/** A run whose effects are stored. If the run is repeated, they are not stored again. */
@Entity('run_done')
@Index('run_done_age', ['finished_at'])
export class RunDone {
  @PrimaryColumn(BYTEWISE_TEXT)
  run_id!: string;

  @Column(CREATED_AT)
  finished_at!: Date;
}
