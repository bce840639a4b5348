import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId, ListenerId, ReplayId, ReplayProgress, UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** Events of the log that are delivered once more to one listener. */
@Entity('replay')
@Index('replay_running', ['leased_until'], { where: "status = 'running'" })
export class ReplayRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: ReplayId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @Column(BYTEWISE_TEXT)
  stream!: string;

  @Column(BYTEWISE_TEXT)
  listener_id!: ListenerId;

  /** Event ids, both inclusive. */
  @Column('text')
  from_id!: string;

  @Column('text')
  to_id!: string;

  @Column('text', { default: 'running' })
  status!: ReplayProgress['status'];

  @Column('integer')
  events!: number;

  @Column('integer', { default: 0 })
  delivered!: number;

  @Column('integer', { default: 0 })
  failed!: number;

  /** The next offset of each partition. */
  @Column('jsonb', { default: {} })
  offsets!: Record<string, number>;

  /** Parked deliveries of a webhook that are not counted yet, by the ids of their events. */
  @Column('jsonb', { default: [] })
  parked!: string[];

  /** Until then one replica works on it. */
  @Column('timestamptz', { default: '-infinity' })
  leased_until!: Date;

  @Column(CREATED_AT)
  created_at!: Date;
}

export const progressOf = ({ id, status, events, delivered, failed }: ReplayRow): ReplayProgress => ({
  id,
  status,
  events,
  delivered,
  failed,
});
