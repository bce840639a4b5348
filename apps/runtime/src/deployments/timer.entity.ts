import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { Schedule, SourceId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';
import { DeploymentRow } from './deployment.entity.js';

/** The next tick of a timer; see TimersRepository. */
@Entity('timer')
@Index('timer_due', ['next_run_at'])
@ForeignKey(() => DeploymentRow, ['source_id'], ['source_id'], { name: 'timer_source_id_fkey', onDelete: 'CASCADE' })
export class TimerRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn('text')
  prop!: string;

  @Column('json')
  schedule!: Schedule;

  @Column('timestamptz')
  next_run_at!: Date;

  @Column('timestamptz', { nullable: true })
  resume_at!: Date | null;

  @Column('text', { nullable: true })
  asked!: string | null;
}
