import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, Migration, type SchemaPart } from '#database';

/** An app's copy of an emitter. */
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

  /** When the app learnt that it became active, and inactive; 0: never since it knows it. */
  @Column('bigint', { default: 0, select: false })
  activated_at_ms!: number;

  @Column('bigint', { default: 0, select: false })
  deactivated_at_ms!: number;

  /** When the app learnt that it was deleted; 0: by a version that did not store it. */
  @Column('bigint', { default: 0, select: false })
  deleted_at_ms!: number;
}

class CreateEmitters1795305600001 extends Migration {
  readonly sql = `
    CREATE TABLE emitter (
      id            text COLLATE "C" PRIMARY KEY,
      owner_id      text COLLATE "C" NOT NULL,
      kind          text NOT NULL,
      active        boolean NOT NULL,
      deleted       boolean NOT NULL,
      version       bigint NOT NULL,
      created_at_ms bigint NOT NULL
    )`;
}

class AddSwitchTimes1795737600001 extends Migration {
  readonly sql = `
    ALTER TABLE emitter
      ADD COLUMN activated_at_ms   bigint NOT NULL DEFAULT 0,
      ADD COLUMN deactivated_at_ms bigint NOT NULL DEFAULT 0`;
}

class AddDeletionTimes1798646400000 extends Migration {
  readonly sql = 'ALTER TABLE emitter ADD COLUMN deleted_at_ms bigint NOT NULL DEFAULT 0';
}

/** The directory's table, for the schema of an app that has one. */
export const emittersSchema: SchemaPart = {
  entities: [Emitter],
  migrations: [CreateEmitters1795305600001, AddSwitchTimes1795737600001, AddDeletionTimes1798646400000],
};
