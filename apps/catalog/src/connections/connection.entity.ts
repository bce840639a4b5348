import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { ConnectionId, SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

/** Credentials for an app. */
@Entity('connection')
@Index('connection_by_owner', ['owner_id', 'id'])
@Index('connection_of_source', ['source_id'], { where: 'source_id IS NOT NULL' })
export class ConnectionRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: ConnectionId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('text')
  app!: string;

  @Column('text')
  name!: string;

  /** Encrypted JSON. */
  @Column('text')
  credentials!: string;

  /** The source whose inline `$auth` it is: it is deleted with the source. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  source_id!: SourceId | null;

  @Column(CREATED_AT)
  created_at!: Date;
}
