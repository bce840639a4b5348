import type { Migration } from './migrate.js';
import { ConsumerPosition, CreateRestores1795305600008, DatabasePeriod } from './restores.schema.js';

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

/** The schema of an app: its own tables and those of the libraries that it uses. */
export function schemaOf(app: string, ...own: SchemaPart[]): Schema {
  const parts = [...own, restores];
  return {
    app,
    entities: parts.flatMap(({ entities }) => entities),
    migrations: parts.flatMap(({ migrations }) => migrations),
    sealed: parts.flatMap(({ sealed = [] }) => sealed),
  };
}
