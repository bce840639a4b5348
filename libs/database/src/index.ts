export { Database, type Session, Transaction } from './database.js';
export {
  explainDatabaseError,
  FOREIGN_KEY_VIOLATION,
  isOfData,
  isTransient,
  LOCK_NOT_AVAILABLE,
  outageOf,
  UNIQUE_VIOLATION,
} from './database-errors.js';
export { DatabaseConfig } from './database.config.js';
export { DatabaseModule } from './database.module.js';
export { deleteOlder } from './delete-older.js';
export { FAIR_BATCH_ROWS, FairBatches, OF_OTHERS, type WaitingRows } from './fair-batches.js';
export { HourlyHousekeeping } from './hourly-housekeeping.js';
export { isLeased } from './is-leased.js';
export { JointWrites, Lookups } from './joint-statements.js';
export { type KeysetPage, type PagePart, readKeysetPage } from './keyset.js';
export { END_WHEN_IDLE, keepSession, STAY_WHEN_IDLE } from './lock-session.js';
export { ensureDatabase, migrate, Migration, newerSchemas, schemaState, SchemaTooNew } from './migrate.js';
export { type PackedBytes, packedBytes, unpackedBytes } from './packed-bytes.js';
export { BYTEWISE_TEXT, CREATED_AT, NOW_MS, type Schema, schemaOf, type SchemaPart } from './schema.js';
export { checkSealed, rotateSealed } from './sealed.js';
export { together } from './together.js';
