import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** The last mail about an error with one code of one emitter, and how many more errors there were since. */
@Entity('error_notice')
export class ErrorNotice {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn(BYTEWISE_TEXT)
  subject_id!: string;

  @PrimaryColumn('text')
  code!: string;

  @Column('timestamptz')
  mailed_at!: Date;

  @Column('int', { default: 0 })
  since!: number;
}

/** An error that is already counted: a fact may arrive twice. */
@Entity('error_seen')
@Index('error_seen_age', ['seen_at'])
export class SeenError {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column(CREATED_AT)
  seen_at!: Date;
}
