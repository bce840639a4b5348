import { Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, Migration, type SchemaPart } from '#database';

/** A record for Kafka that the relay has not sent yet. */
@Entity('outbox')
@Index('outbox_turn', ['account_id', 'id'], { where: 'NOT refused' })
@Index('outbox_refused', ['id'], { where: 'refused' })
export class OutboxRecord {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('text')
  topic!: string;

  @Column('text')
  key!: string;

  /** Not compressed, except by versions before {@link StoreHeadersUncompressed1798992000003}. */
  @Column('jsonb')
  headers!: Record<string, string>;

  @Column('bytea', { nullable: true })
  value!: Buffer | null;

  @Column({ type: 'timestamptz', default: () => 'now()' })
  added_at!: Date;

  /** Kafka refuses it, such as because of its size: it is sent again after a restart of the service. */
  @Column('boolean', { default: false })
  refused!: boolean;

  /** null: written by an older version. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  account_id!: UserId | null;
}

class CreateOutbox1795305600000 extends Migration {
  readonly sql = `
    CREATE TABLE outbox (
      id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      topic   text NOT NULL,
      key     text NOT NULL,
      headers jsonb NOT NULL,
      value   bytea
    )`;
}

class AddTimesToOutbox1795910400001 extends Migration {
  readonly sql = 'ALTER TABLE outbox ADD COLUMN added_at timestamptz NOT NULL DEFAULT now()';
}

class AddRefusalsToOutbox1796000000000 extends Migration {
  readonly sql = 'ALTER TABLE outbox ADD COLUMN refused boolean NOT NULL DEFAULT false';
}

class AddAccountsToOutbox1796860800000 extends Migration {
  readonly sql = `
    ALTER TABLE outbox ADD COLUMN account_id text COLLATE "C";
    -- the oldest of each account
    CREATE INDEX outbox_turn ON outbox (account_id, id) WHERE NOT refused`;
}

class IndexRefusals1798300800000 extends Migration {
  readonly sql = `
    -- those to send again at a start: there are few, and the rest of the table can be large
    CREATE INDEX outbox_refused ON outbox (id) WHERE refused`;
}

class StoreHeadersUncompressed1798992000003 extends Migration {
  readonly sql = `
    -- the size of an uncompressed value is known without reading it; 64 KB of one character would take a kilobyte, and 10 ms to decompress and print
    ALTER TABLE outbox ALTER COLUMN headers SET STORAGE EXTERNAL`;
}

/** The table of the outbox, for the schema of an app that has one. */
export const outboxSchema: SchemaPart = {
  entities: [OutboxRecord],
  migrations: [
    CreateOutbox1795305600000,
    AddTimesToOutbox1795910400001,
    AddRefusalsToOutbox1796000000000,
    AddAccountsToOutbox1796860800000,
    IndexRefusals1798300800000,
    StoreHeadersUncompressed1798992000003,
  ],
};
