import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import type { Id, UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

@Entity('account')
export class AccountRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: UserId;

  @Column('text')
  email!: string;

  @Column('text')
  username!: string;

  /** null: a free account. */
  @Column('timestamptz', { nullable: true })
  billing_period_start!: Date | null;

  @Column('timestamptz', { nullable: true })
  billing_period_end!: Date | null;

  @Column(CREATED_AT)
  created_at!: Date;

  /** Whether the owner gets mail about errors. */
  @Column('boolean', { default: true })
  error_mail!: boolean;

  /** null: it is not suspended. */
  @Column('timestamptz', { nullable: true })
  suspended_at!: Date | null;
}

/** The permissions of a key: `read` only reads, and no secrets. */
export const KEY_SCOPES = ['read', 'write'] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

@Entity('api_key')
@Unique('api_key_hash_key', ['hash'])
@Index('api_key_by_account', ['account_id', 'id'])
@Index('api_key_valid', ['account_id', 'id'], { where: 'revoked_at IS NULL' })
@ForeignKey(() => AccountRow, ['account_id'], ['id'], { name: 'api_key_account_id_fkey' })
export class ApiKeyRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: Id<'apiKey'>;

  @Column(BYTEWISE_TEXT)
  account_id!: UserId;

  /** SHA-256 of the key; lists do not show it. */
  @Column('bytea', { select: false })
  hash!: Buffer;

  /** The first characters of the key. */
  @Column('text')
  prefix!: string;

  @Column('text', { nullable: true })
  name!: string | null;

  @Column('text', { default: 'write' })
  scope!: KeyScope;

  @Column(CREATED_AT)
  created_at!: Date;

  /** A few seconds behind: one statement writes it for many requests. */
  @Column('timestamptz', { nullable: true })
  last_used_at!: Date | null;

  @Column('timestamptz', { nullable: true })
  revoked_at!: Date | null;

  /** The operator has issued or chosen it. Its row is never deleted: `account bootstrap` must recognise a key that was revoked. */
  @Column('boolean', { default: true, select: false })
  by_operator!: boolean;
}

/** An account, and the key that opened it. */
export type OpenedAccount = AccountRow & { key_id: Id<'apiKey'>; scope: KeyScope };

/** The usage of an account since 00:00 UTC, or since its billing period began. */
export interface Usage {
  compute_ms: number;
  invocations: number;
}
