import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import type { AutoSubscription, Subscription, UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

@Entity('subscription')
@Unique('subscription_owner_id_emitter_id_event_name_listener_id_key', ['owner_id', 'emitter_id', 'event_name', 'listener_id'])
// `INCLUDE (listener_id)`, which TypeORM reads as a fourth column and cannot write
@Index('subscription_match', { synchronize: false })
@Index('subscription_of_listener', ['listener_id'])
@Index('subscription_of_emitter', ['emitter_id'])
export class SubscriptionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: Subscription['id'];

  @Column({ ...BYTEWISE_TEXT, select: false })
  owner_id!: UserId;

  /** A source or workflow, `dc_*`, `p_*`, or the owner. */
  @Column(BYTEWISE_TEXT)
  emitter_id!: Subscription['emitter_id'];

  @Column(BYTEWISE_TEXT)
  listener_id!: Subscription['listener_id'];

  /** As the request has it; `stream` is what it means. */
  @Column(BYTEWISE_TEXT)
  event_name!: string;

  @Column({ ...BYTEWISE_TEXT, select: false })
  stream!: string;
}

@Entity('auto_subscription')
@Unique('auto_subscription_owner_id_event_name_listener_id_key', ['owner_id', 'event_name', 'listener_id'])
@Index('auto_subscription_of_listener', ['listener_id'])
export class AutoSubscriptionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: AutoSubscription['id'];

  @Column({ ...BYTEWISE_TEXT, select: false })
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  event_name!: string;

  @Column(BYTEWISE_TEXT)
  listener_id!: AutoSubscription['listener_id'];

  /** It covers emitters created from then on. */
  @Column('bigint', { select: false })
  created_at_ms!: number;
}
