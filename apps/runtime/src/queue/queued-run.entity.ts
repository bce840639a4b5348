import { Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import type { RunRequest, SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** A run that waits because its account has reached its limit; deleted when the run has ended. */
@Entity('queued_run')
@Unique('queued_run_run_id_key', ['run_id'])
@Index('queued_run_turn', ['account_id', 'source_id', 'seq'])
@Index('queued_run_source', ['source_id'])
export class QueuedRun {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  seq!: number;

  @Column(BYTEWISE_TEXT)
  run_id!: string;

  @Column(BYTEWISE_TEXT)
  account_id!: UserId;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  /** Whether it is the run of a hook, which outlives its source. */
  @Column('boolean')
  hook!: boolean;

  @Column('jsonb')
  request!: RunRequest;
}

/** The replica that executes the queued runs of an account. */
@Entity('queue_lease')
export class QueueLease {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @Column('text')
  replica!: string;

  @Column('timestamptz')
  leased_until!: Date;
}
