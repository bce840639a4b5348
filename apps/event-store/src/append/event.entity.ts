import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId } from '#contracts';
import type { Stream } from '#events';
import { BYTEWISE_TEXT } from '#database';

/** A stored event. Its id is `<ms>-<seq>`, its place in the log. */
@Entity('event')
@Index('event_emitted_once', ['emit_id', 'emitter_id', 'stream'], { unique: true })
export class EventRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @PrimaryColumn(BYTEWISE_TEXT)
  stream!: Stream;

  @PrimaryColumn('bigint')
  ms!: number;

  @PrimaryColumn('bigint')
  seq!: number;

  /** The emit id; a producer's retry has the same one. */
  @Column(BYTEWISE_TEXT)
  emit_id!: string;

  /** The JSON as it was emitted, byte for byte. */
  @Column('bytea')
  event!: Buffer;

  /** Only for an event over 1 KB: the truncated JSON that lists show without `expand=event`. */
  @Column('bytea', { nullable: true })
  truncated!: Buffer | null;

  @Column('text', { nullable: true })
  summary!: string | null;

  @Column('text', { nullable: true })
  item_id!: string | null;

  @Column('bigint', { nullable: true })
  item_ts!: number | null;
}
