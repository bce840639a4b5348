import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** A POST with an `Idempotency-Key`, and the response that a repeat gets. */
@Entity('idempotent_request')
@Index('idempotent_request_age', ['created_at'])
export class IdempotentRequest {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn(BYTEWISE_TEXT)
  key!: string;

  /** SHA-256 of method, path, query and body. */
  @Column('bytea')
  fingerprint!: Buffer;

  /** null while the first request is in progress. */
  @Column('int', { nullable: true })
  status!: number | null;

  @Column('text', { nullable: true })
  content_type!: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true })
  body!: string | null;

  @Column(CREATED_AT)
  created_at!: Date;
}
