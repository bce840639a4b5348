import type { MigrationInterface, QueryRunner } from 'typeorm';

type Entity = abstract new (...args: never[]) => object;

/**
 * A step of a schema. Its class is named after what it does and the time in ms at which it was written: `CreateOutbox1795305600000`. Once released it
 * never changes. There is no way back: services of the previous version work on the new schema, and for an older one there is the backup.
 */
export abstract class Migration implements MigrationInterface {
  protected abstract readonly sql: string;

  async up(database: QueryRunner): Promise<void> {
    await database.query(this.sql);
  }

  down(): Promise<never> {
    return Promise.reject(new Error(`${this.constructor.name} cannot be undone: restore a backup`));
  }
}

/** What a library or an app keeps in a database: its tables as entities, and the migrations that make them. */
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
  /** What the value of the row with this key is bound to. */
  place(...ids: string[]): string;
}

/** All that is in an app's database. */
export interface Schema extends SchemaPart {
  /** As the app is called: `event-store`. */
  app: string;
  sealed: SealedColumn[];
}

/** The schema of an app: its own tables and those of the libraries that it uses. */
export function schemaOf(app: string, ...parts: SchemaPart[]): Schema {
  return {
    app,
    entities: parts.flatMap(({ entities }) => entities),
    migrations: parts.flatMap(({ migrations }) => migrations),
    sealed: parts.flatMap(({ sealed = [] }) => sealed),
  };
}

/** Type of a column whose text is compared byte by byte, whatever the server's locale: ids, keys, names of streams. */
export const BYTEWISE_TEXT = { type: 'text', collation: 'C' } as const;

/** Type of the column that holds the time at which a row was created. */
export const CREATED_AT = { type: 'timestamptz', default: () => 'now()' } as const;
