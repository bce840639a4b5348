import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId } from '#contracts';
import type { Stream } from '#events';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

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

/** The position up to which a partition of the log is stored, and its clock there. */
@Entity('event_progress')
export class EventProgress {
  @PrimaryColumn(BYTEWISE_TEXT)
  topic!: string;

  @PrimaryColumn('integer')
  partition!: number;

  @Column('bigint', { default: 0 })
  next_offset!: number;

  @Column('bigint', { default: 0 })
  last_ms!: number;

  /** The timestamp of the record below `next_offset`: it identifies the log. */
  @Column('bigint', { nullable: true })
  record_ms!: number | null;
}

/** A range of events that a user has deleted: the log still has the events, and they must not be delivered again. */
@Entity('deleted_range')
@Index('deleted_range_age', ['deleted_at'])
// an index on expressions, which TypeORM cannot write
@Index('deleted_range_withdrawals', { synchronize: false })
export class DeletedRangeRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  /** The place of the deletion in the log. */
  @PrimaryColumn('bigint')
  ms!: number;

  @PrimaryColumn('bigint')
  seq!: number;

  /** null: every stream; `*`: the default one and all custom ones. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  stream!: string | null;

  /** Event ids, inclusive; null: from the first, to the last. */
  @Column('text', { nullable: true })
  start_id!: string | null;

  @Column('text', { nullable: true })
  end_id!: string | null;

  @Column(CREATED_AT)
  deleted_at!: Date;
}

/** An emit that waited for its `delivery_ts` until its event was deleted from `$in`. */
@Entity('withdrawn_emit')
@Index('withdrawn_emit_age', ['withdrawn_at'])
export class WithdrawnEmitRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @PrimaryColumn(BYTEWISE_TEXT)
  emit_id!: string;

  @Column(CREATED_AT)
  withdrawn_at!: Date;
}
