import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT } from '#database';

/** A room's copy of an emitter. */
@Entity('emitter')
export class Emitter {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('text')
  kind!: 'source' | 'workflow';

  @Column('boolean')
  active!: boolean;

  @Column('boolean')
  deleted!: boolean;

  /** Of the newest state. */
  @Column('bigint')
  version!: number;

  @Column('bigint')
  created_at_ms!: number;
}
