import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** A run whose effects are stored. If the run is repeated, they are not stored again. */
@Entity('run_done')
@Index('run_done_age', ['finished_at'])
export class RunDone {
  @PrimaryColumn(BYTEWISE_TEXT)
  run_id!: string;

  @Column(CREATED_AT)
  finished_at!: Date;
}
