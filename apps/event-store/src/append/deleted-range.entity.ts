import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** A range of events that a user has deleted: the log still has the events, and they must not be delivered again. */
@Entity('deleted_range')
@Index('deleted_range_age', ['deleted_at'])
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
