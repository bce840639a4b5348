import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import type { Deployment, Hook, Schedule, SourceId, StoredProps, UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** A source as the runtime executes it. */
@Entity('deployment')
@Index('deployment_of_owner', ['owner_id'])
@Unique('deployment_endpoint_key_key', ['endpoint_key'])
export class DeploymentRow implements Deployment {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('boolean')
  active!: boolean;

  /** It is inactive only because its account is suspended. */
  @Column('boolean', { default: false })
  suspended?: boolean;

  @Column('bigint')
  version!: number;

  @Column(BYTEWISE_TEXT)
  code_hash!: string;

  @Column('json')
  configured_props!: StoredProps;

  @Column('jsonb', { nullable: true })
  credentials?: Record<string, string> | null;

  @Column('json')
  schedules!: Record<string, Schedule>;

  @Column({ ...BYTEWISE_TEXT, nullable: true })
  endpoint_key!: string | null;

  @Column('text')
  name_slug!: string;

  /** Consecutive runs that ended their process. */
  @Column('int', { default: 0 })
  kills_in_row!: number;

  /** The hooks that the component has; absent: unknown. */
  @Column('text', { array: true, nullable: true })
  hooks?: Hook[];

  /** How many of its runs may be in progress at a time; absent: unknown, so one. */
  @Column('int', { nullable: true })
  runs_at_a_time?: number;
}

/** The next tick of a timer; see TimersRepository. */
@Entity('timer')
@Index('timer_due', ['next_run_at'])
@Index('timer_turn', ['account_id', 'next_run_at'])
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

  /** When its schedule was set, or its next tick corrected. null: by an older version. */
  @Column('timestamptz', { nullable: true })
  set_at!: Date | null;

  @Column('timestamptz', { nullable: true })
  resume_at!: Date | null;

  @Column('text', { nullable: true })
  run_id!: string | null;

  /** null: written by an older version. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  account_id!: UserId | null;
}
