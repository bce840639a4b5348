import { Column, Entity, PrimaryColumn } from 'typeorm';
import { Migration } from './migrate.js';

/** Type of a column whose text is compared byte by byte, whatever the server's locale: ids, keys, names of streams. */
export const BYTEWISE_TEXT = { type: 'text', collation: 'C' } as const;

/** Type of the column that holds the time at which a row was created. */
export const CREATED_AT = { type: 'timestamptz', default: () => 'now()' } as const;

/** SQL: the clock of the database server, in ms. */
export const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)';

/**
 * The time for which one process has used the database, in ms. Each commit to Kafka contains a time that was in a period when it was made. If no period
 * contains it, the database was restored to an older state.
 */
@Entity('database_period')
export class DatabasePeriod {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('bigint')
  from_ms!: number;

  @Column('bigint')
  to_ms!: number;
}

/** The position of a consumer group in a partition. Its effects up to there are in the database. */
@Entity('consumer_position')
export class ConsumerPosition {
  @PrimaryColumn(BYTEWISE_TEXT)
  consumer_group!: string;

  @PrimaryColumn(BYTEWISE_TEXT)
  topic!: string;

  @PrimaryColumn('integer')
  partition!: number;

  @Column('bigint')
  next_offset!: number;

  @Column('bigint')
  last_ms!: number;

  /** The timestamp of the record below `next_offset`: it identifies the log. */
  @Column('bigint', { nullable: true })
  record_ms!: number | null;
}

export class CreateRestores1795305600008 extends Migration {
  readonly sql = `
    CREATE TABLE database_period (
      id      uuid PRIMARY KEY,
      from_ms bigint NOT NULL,
      to_ms   bigint NOT NULL
    ) WITH (fillfactor = 10);
    CREATE TABLE consumer_position (
      consumer_group text COLLATE "C" NOT NULL,
      topic          text COLLATE "C" NOT NULL,
      partition      integer NOT NULL,
      next_offset    bigint NOT NULL,
      last_ms        bigint NOT NULL,
      record_ms      bigint,
      PRIMARY KEY (consumer_group, topic, partition)
    ) WITH (fillfactor = 10);`;
}

class LimitLostSessions1795910400000 extends Migration {
  readonly sql = `
    DO $$
    DECLARE
      setting text;
    BEGIN
      FOREACH setting IN ARRAY ARRAY[
        -- A process that stops in the middle of a transaction must not hold its locks forever.
        'idle_in_transaction_session_timeout = ''20s''',
        -- Nor must one whose host disappears: by default, the server notices that after two hours. Ignored on Unix sockets.
        'tcp_keepalives_idle = 10', 'tcp_keepalives_interval = 5', 'tcp_keepalives_count = 3'
      ] LOOP
        EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
      END LOOP;
    END $$;`;
}

class EndClosedSessions1799164800000 extends Migration {
  readonly sql = `
    DO $$
    BEGIN
      -- A statement that waits for a lock does not notice that its service has closed the connection: its session would stay, and the statement would run later.
      EXECUTE format('ALTER DATABASE %I SET client_connection_check_interval = ''10s''', current_database());
    EXCEPTION WHEN invalid_parameter_value THEN
      -- the operating system of the server does not report closed connections
    END $$;`;
}

type Entity = abstract new (...args: never[]) => object;

/** The part of a database that a library or an app owns: its tables as entities, and the migrations that create them. */
export interface SchemaPart {
  entities: Entity[];
  migrations: (new () => Migration)[];
  /** The columns that hold encrypted values. */
  sealed?: SealedColumn[];
}

/** A column of type text or json whose values are encrypted (libs/secrets). */
export interface SealedColumn {
  table: string;
  /** The columns of the primary key. */
  key: string[];
  column: string;
  /** The column is of type json: an encrypted value is a JSON string. */
  json?: boolean;
  /** The context to which the value of the row with this key is bound. */
  context(...ids: string[]): string;
}

/** The whole schema of an app's database. */
export interface Schema extends SchemaPart {
  /** The name of the app, such as `event-store`. */
  app: string;
  sealed: SealedColumn[];
}

/** Tables with which a service recognises that its database was restored. */
const restores: SchemaPart = { entities: [DatabasePeriod, ConsumerPosition], migrations: [CreateRestores1795305600008] };

/** How long the server keeps a session whose process or connection is gone. A pooler may refuse such settings as parameters of the connection. */
const sessions: SchemaPart = { entities: [], migrations: [LimitLostSessions1795910400000, EndClosedSessions1799164800000] };

/** The schema of an app: its own tables and those of the libraries that it uses. */
export function schemaOf(app: string, ...own: SchemaPart[]): Schema {
  const parts = [...own, restores, sessions];
  return {
    app,
    entities: parts.flatMap(({ entities }) => entities),
    migrations: parts.flatMap(({ migrations }) => migrations),
    sealed: parts.flatMap(({ sealed = [] }) => sealed),
  };
}
