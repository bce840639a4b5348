import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { Log } from '#observability';
import { LOCK_NOT_AVAILABLE, UNIQUE_VIOLATION } from './database-errors.js';
import { databaseUrl, dataSourceOptions, KEEP_ALIVE } from './data-source.js';
import type { Schema } from './schema.js';

/**
 * A step of a schema. Its class is named after what it does and the time in ms at which it was written: `CreateOutbox1795305600000`. Once released it
 * never changes. A migration cannot be undone: services of the previous version work on the new schema, and an older version needs the backup.
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

/** A newer version has migrated the database; this version does not know its migrations. */
export class SchemaTooNew extends Error {
  override readonly name = 'SchemaTooNew';
}

/** Creates the database if it is missing. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    try {
      const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
      // the names are constants with a checked prefix; an identifier cannot be a parameter
      if (rowCount === 0) await client.query(`CREATE DATABASE "${name}" TEMPLATE template0 ENCODING 'UTF8'`);
    } catch (error) {
      // another process was faster
      if (!['42P04', UNIQUE_VIOLATION].includes((error as { code?: string }).code ?? '')) throw error;
    }
  });
}

type Migrations = Pick<Schema, 'migrations'>;

/**
 * Every statement of the services on a table waits behind a migration that waits for a lock on it, such as that of a `pg_dump`. So a migration gives up
 * soon, and is repeated after a pause.
 */
const LOCK_TIMEOUT = '2s';
const LOCK_PAUSE_MS = 5000;
const LOCKS_WITHIN_MS = 30 * 60_000;

/**
 * Brings a database to the newest schema: applies each migration once, in a transaction. Several processes may call it at the same time.
 * Returns the names of the migrations that it applied.
 * @throws SchemaTooNew, having changed nothing
 */
export async function migrate(serverUrl: string, name: string, schema: Migrations, log: Log): Promise<string[]> {
  return withClient(databaseUrl(serverUrl, name), async (client) => {
    // TypeORM does not lock: two processes would run the same migration.
    await client.query("SELECT pg_advisory_lock(hashtext('sluice.migrate'))");
    const { missing, unknown } = await schemaState(serverUrl, name, schema);
    if (unknown.length > 0)
      throw new SchemaTooNew(`the schema of database ${name} is newer than this version: it has ${unknown.join(', ')}`);
    const dataSource = new DataSource(dataSourceOptions({ ...schema, entities: [] }, { serverUrl, name, max: 1, log, responseMs: 0 }));
    await dataSource.initialize();
    try {
      await dataSource.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
      await repeatedWhileLocked(() => dataSource.runMigrations({ transaction: 'each' }), name, log);
      return missing;
    } finally {
      await dataSource.destroy();
    }
  });
}

/** Those that are applied before one that is not remain, and are not repeated. */
async function repeatedWhileLocked(run: () => Promise<unknown>, database: string, log: Log): Promise<void> {
  for (const end = performance.now() + LOCKS_WITHIN_MS; ; await sleep(LOCK_PAUSE_MS)) {
    try {
      return void (await run());
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE || performance.now() > end) throw error;
      log.warn({ database, err: error }, 'migration.waits-for-lock');
    }
  }
}

/** The migrations that the database lacks, and those that it has and this version does not know. A missing database lacks all of them. */
export async function schemaState(
  serverUrl: string,
  name: string,
  { migrations }: Migrations,
): Promise<{ missing: string[]; unknown: string[] }> {
  const known = migrations.map((migration) => migration.name);
  const applied = await appliedMigrations(serverUrl, name);
  return { missing: known.filter((each) => !applied.includes(each)), unknown: applied.filter((each) => !known.includes(each)) };
}

/**
 * The databases that a newer version has migrated, as after a roll back: this version works with all of them as they are.
 * @throws SchemaTooNew if one of all databases lacks a migration of this version, which thus has neither created these schemas nor can complete them
 */
export function newerSchemas<State extends { name: string; missing: string[]; unknown: string[] }>(states: State[]): State[] {
  const newer = states.filter(({ unknown }) => unknown.length > 0);
  const older = states.filter(({ missing }) => missing.length > 0);
  if (newer.length > 0 && older.length > 0) {
    const has = newer.map(({ name, unknown }) => `${name} has ${unknown.join(', ')}`);
    const lacks = older.map(({ name, missing }) => `${name} lacks ${missing.join(', ')}`);
    throw new SchemaTooNew(
      `the databases are newer and older than this version at the same time: ${[...has, ...lacks].join('; ')}. Migrate with a version that knows all of these migrations, or restore a backup`,
    );
  }
  return newer;
}

/** A plain connection instead of a DataSource: a process that waits for a database must see its first failure, and leave nothing open. */
async function appliedMigrations(serverUrl: string, name: string): Promise<string[]> {
  try {
    return await withClient(databaseUrl(serverUrl, name), async (client) => {
      const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations ORDER BY id');
      return rows.map((row) => row.name);
    });
  } catch (error) {
    // the database, or its table of migrations, does not exist
    if (['3D000', '42P01'].includes((error as { code?: string }).code ?? '')) return [];
    throw error;
  }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, ...KEEP_ALIVE });
  // a connection that breaks between two statements: the next statement fails and reports it
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
