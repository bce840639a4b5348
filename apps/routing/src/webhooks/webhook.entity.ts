import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { type RotatedWebhookSecret, unixSeconds, type UserId, type Webhook, type WebhookId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';
import type { SecretBox } from '#secrets';
import { openedSecret } from './signing-secret.js';

/** A webhook. What TypeORM does not select by default belongs to signing and to delivery, which read it by SQL. */
@Entity('webhook')
@Index('webhook_external_id', ['owner_id', 'external_id'], { unique: true, where: 'external_id IS NOT NULL' })
@Index('webhook_of_owner', ['owner_id', 'id'])
export class WebhookRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: WebhookId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('text', { nullable: true })
  name!: string | null;

  @Column('text', { nullable: true })
  description!: string | null;

  @Column('text')
  url!: string;

  @Column('boolean', { default: true })
  active!: boolean;

  /** Its account is suspended: it counts as inactive. */
  @Column('boolean', { default: false, select: false })
  suspended!: boolean;

  /** When its account was resumed after the last suspension: the time before it does not count for deliveries that have waited too long. */
  @Column('timestamptz', { nullable: true, select: false })
  resumed_at!: Date | null;

  /** When it was switched on for the last time, by its owner or by the resumption of its account. */
  @Column({ ...CREATED_AT, select: false })
  activated_at!: Date;

  /** When it was switched off for the last time: by its owner, because of its failures, or by the suspension of its account. */
  @Column({ ...CREATED_AT, select: false })
  deactivated_at!: Date;

  /** Deliveries per second; null: no limit. */
  @Column('integer', { nullable: true })
  rate_limit!: number | null;

  /** The user's own id of it. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  external_id!: string | null;

  @Column(CREATED_AT)
  created_at!: Date;

  @Column(CREATED_AT)
  updated_at!: Date;

  /** Encrypted. */
  @Column('text', { select: false })
  secret!: string;

  /** Of the last rotation: a repeated request rotates once. */
  @Column('text', { nullable: true, select: false })
  rotation_id!: string | null;

  /** Grows with each change: replicas that hold the webhook in memory read it again. */
  @Column('bigint', { default: 1, select: false })
  version!: number;

  /** New deliveries are parked and delivered from the backlog, in order. */
  @Column('boolean', { default: false, select: false })
  spilled!: boolean;

  /** Until then new deliveries wait, because the backlog is about to be empty. */
  @Column('timestamptz', { nullable: true, select: false })
  closing_until!: Date | null;

  /** The first failure since the last success, or since the last long time without attempts. */
  @Column('timestamptz', { nullable: true, select: false })
  failing_since!: Date | null;

  /** One of the last failures: of those that follow soon after one another, not each is noted. */
  @Column('timestamptz', { nullable: true, select: false })
  last_failed_at!: Date | null;

  /** The deliveries that wait for it are being given up, because its receiver has failed for too long or is gone. */
  @Column('boolean', { default: false, select: false })
  giving_up!: boolean;

  /** When `$errors` last reported a delivery that was given up. */
  @Column('timestamptz', { nullable: true, select: false })
  failure_told_at!: Date | null;
}

/** A secret of a webhook that signs in addition to the current one until it expires. */
@Entity('previous_secret')
export class PreviousSecret {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  /** The rotation that replaced it. */
  @PrimaryColumn(BYTEWISE_TEXT)
  rotation_id!: string;

  /** Encrypted. */
  @Column('text')
  secret!: string;

  @Column('timestamptz')
  expires_at!: Date;
}

/** An account that is suspended: webhooks and replays that a request in progress creates are suspended and cancelled, too. */
@Entity('suspended_account')
export class SuspendedAccountRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  owner_id!: UserId;
}

/** SQL: whether the account with the id of the parameter `owner` is suspended. */
export const IS_SUSPENDED = 'EXISTS (SELECT FROM suspended_account WHERE owner_id = :owner)';

export interface SecretRow {
  secret: string;
}

/** Of a webhook whose secret has been rotated. */
export interface RotatedSecretRow extends SecretRow {
  previous_secret_expires_at: Date;
}

/** As the API returns it; in lists without its owner. */
export const webhookOf = (row: WebhookRow, { inList = false } = {}): Webhook => ({
  id: row.id,
  ...(inList ? {} : { user_id: row.owner_id }),
  name: row.name,
  description: row.description,
  url: row.url,
  active: row.active,
  ...(row.rate_limit === null ? {} : { rate_limit: row.rate_limit }),
  ...(row.external_id === null ? {} : { external_id: row.external_id }),
  created_at: unixSeconds(row.created_at),
  updated_at: unixSeconds(row.updated_at),
});

export const rotatedSecretOf = (box: SecretBox, id: WebhookId, row: RotatedSecretRow): RotatedWebhookSecret => ({
  secret: openedSecret(box, id, row.secret),
  previous_expires_at: unixSeconds(row.previous_secret_expires_at),
});
