import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** The usage of an account's sources on a day (UTC). */
@Entity('usage')
export class UsageRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn('date')
  day!: string;

  @Column('bigint', { default: 0 })
  compute_ms!: number;

  @Column('bigint', { default: 0 })
  invocations!: number;
}

/** A run that is already counted: a fact may arrive twice. */
@Entity('run_counted')
@Index('run_counted_age', ['counted_at'])
export class CountedRun {
  @PrimaryColumn(BYTEWISE_TEXT)
  run_id!: string;

  @Column(CREATED_AT)
  counted_at!: Date;
}
