import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { SourceId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** An emit that waits for its `delivery_ts`: the whole record of the event, ready to be produced. */
@Entity('waiting_emit')
@Index('waiting_emit_due', ['due_at'])
@Index('waiting_emit_source', ['source_id'])
export class WaitingEmit {
  @PrimaryColumn(BYTEWISE_TEXT)
  emit_id!: string;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  @Column('timestamptz')
  due_at!: Date;

  @Column('jsonb')
  headers!: Record<string, string>;

  @Column('bytea')
  value!: Buffer;
}
