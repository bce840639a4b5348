import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { Subscription, UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** A subscription that was deleted, and still applies to the events from before: its last end, if it was made and deleted several times. */
@Entity('ended_subscription')
@Index('ended_subscription_end', ['owner_id', 'emitter_id', 'stream', 'ended_at_ms'])
export class EndedSubscriptionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  owner_id!: UserId;

  @PrimaryColumn(BYTEWISE_TEXT)
  emitter_id!: Subscription['emitter_id'];

  @PrimaryColumn(BYTEWISE_TEXT)
  stream!: string;

  @Index('ended_subscription_of_listener')
  @PrimaryColumn(BYTEWISE_TEXT)
  listener_id!: Subscription['listener_id'];

  @Index('ended_subscription_age')
  @Column('bigint')
  ended_at_ms!: number;
}
