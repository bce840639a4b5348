export { databaseUrl } from './data-source.js';
export { Database, isOfData, isTransient, type Session, Transaction, UNIQUE_VIOLATION } from './database.js';
export { explainDatabaseError } from './database-errors.js';
export { DatabaseConfig } from './database.config.js';
export { DatabaseModule } from './database.module.js';
export { type KeysetPage, readKeysetPage } from './keyset.js';
export { Lookups } from './lookups.js';
export { ensureDatabase, migrate, schemaState, SchemaTooNew } from './migrate.js';
export { BYTEWISE_TEXT, CREATED_AT, Migration, type Schema, schemaOf, type SchemaPart } from './schema.js';
