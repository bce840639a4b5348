import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { EmitterId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

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
