import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** The usage of an account's runs on a day (UTC). */
@Entity('usage')
export class UsageRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn('date')
  day!: string;

  @Column('bigint')
  compute_ms!: number;

  @Column('bigint')
  invocations!: number;
}

/** A source that was notified on a day that its account is over its quota. */
@Entity('quota_notice')
export class QuotaNotice {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn('date')
  day!: string;
}
