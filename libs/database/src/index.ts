export { Database, databaseUrl, isOfData, isTransient, type Session, type Transaction, UNIQUE_VIOLATION } from './database.js';
export { explainDatabaseError } from './database-errors.js';
export { DatabaseConfig } from './database.config.js';
export { DatabaseModule } from './database.module.js';
export { type KeysetList, type KeysetPage, readKeysetPage } from './keyset.js';
export { Lookups } from './lookups.js';
export { ensureDatabase, migrate, migrationsOf, schemaState, SchemaTooNew } from './migrate.js';
