import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId, WebhookId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** A delivery that could not be made at once, with everything needed to make it later. */
@Entity('parked_delivery')
@Index('parked_delivery_fresh', ['webhook_id', 'ms', 'seq'], { where: 'fresh AND due_at IS NOT NULL' })
@Index('parked_delivery_fresh_of_emitter', ['webhook_id', 'emitter_id', 'ms', 'seq'], { where: 'fresh AND due_at IS NOT NULL' })
@Index('parked_delivery_due', ['webhook_id', 'due_at'], { where: 'NOT fresh AND due_at IS NOT NULL' })
@Index('parked_delivery_in_flight', ['webhook_id'], { where: 'in_flight_until IS NOT NULL' })
@Index('parked_delivery_of_emitter', ['emitter_id', 'ms', 'seq', 'webhook_id'], { where: "body <> ''" })
@Index('parked_delivery_age', ['parked_at'], { where: 'due_at IS NOT NULL' })
@Index('parked_delivery_failed', ['failed_at'], { where: 'due_at IS NULL' })
export class ParkedDelivery {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  /** The event's id, `<ms>-<seq>`. */
  @PrimaryColumn('bigint')
  ms!: number;

  @PrimaryColumn('bigint')
  seq!: number;

  @Column(BYTEWISE_TEXT)
  emitter_id!: string;

  @Column(BYTEWISE_TEXT)
  stream!: string;

  @Column(BYTEWISE_TEXT)
  emit_id!: string;

  /** When it happened, if the emitter states it. */
  @Column('text', { nullable: true })
  time!: string | null;

  /** The attributes of the event's producer, as JSON: CloudEvents attributes and trace context; null: none. */
  @Column('text', { nullable: true })
  context!: string | null;

  @Column('bytea')
  body!: Buffer;

  /** Not attempted yet: attempted in order. */
  @Column('boolean')
  fresh!: boolean;

  /** The newest attempts, as the API shows them. */
  @Column('jsonb')
  attempts!: object[];

  /** The number of attempts in the retry schedule. */
  @Column('integer')
  tries!: number;

  /** null: given up. */
  @Column('timestamptz', { nullable: true })
  due_at!: Date | null;

  /** When its schedule would attempt it, if a user has requested an earlier attempt. */
  @Column('timestamptz', { nullable: true })
  scheduled_at!: Date | null;

  /** Its first attempt is in flight until this time at most. */
  @Column('timestamptz', { nullable: true })
  in_flight_until!: Date | null;

  /** When it was parked; from the first attempt on, when its retry schedule began. */
  @Column(CREATED_AT)
  parked_at!: Date;

  @Column('timestamptz', { nullable: true })
  failed_at!: Date | null;
}

/**
 * SQL: whether the first attempt of a `parked_delivery` is in flight. One that began in the future began while the clock of the database was ahead, and does not
 * count: its replica may have been killed, and it would hold up its webhook for as long as the clock was ahead.
 */
export const IS_IN_FLIGHT = "coalesce(in_flight_until > now() AND parked_at < now() + interval '2 minutes', false)";

/** SQL: the revision of a `parked_delivery`, as a column. */
export const REVISION = 'parked_at::text AS revision';

/** A deleted webhook of which parked deliveries are left, which are deleted in batches. */
@Entity('deleted_webhook')
export class DeletedWebhook {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;
}
