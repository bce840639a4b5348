import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Database, ensureDatabase, migrate, type Schema } from '#database';
import { createLog } from '#observability';

export interface FreshDatabase {
  database: Database;
  /** The URL of the server. */
  url: string;
  /** Closes the connections and drops the database. */
  drop(): Promise<void>;
}

/**
 * A separate database with the schema of an app's migrations.
 *
 * @param options.url of the server; default: the server of this test run
 * @param options.max connections of the pool
 */
export async function freshDatabase(
  schema: Schema,
  { url = process.env.SLUICE_TEST_DATABASE_URL ?? '', max = 10 }: { url?: string; max?: number } = {},
): Promise<FreshDatabase> {
  const log = createLog('test', 'silent');
  const name = `${schema.app.replaceAll('-', '_')}_${randomBytes(6).toString('hex')}`;
  await ensureDatabase(url, name);
  await migrate(url, name, schema, log);
  const database = await Database.of(schema, { serverUrl: url, name, max, log }).open();
  const drop = async () => {
    await database.close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`DROP DATABASE "${name}" WITH (FORCE)`);
    } finally {
      await client.end();
    }
  };
  return { database, url, drop };
}

/** Resolves when a number of statements in this database wait for locks. */
export async function untilLocked({ database }: Pick<FreshDatabase, 'database'>, statements = 1): Promise<void> {
  const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  while ((await database.query(waits)).rows.length < statements) await sleep(10);
}

/**
 * The differences between the entities of a schema and the tables that its migrations create: the statements with which TypeORM would bring the tables in
 * line, and the tables without an entity. Does not compare what entities cannot express: storage parameters, the condition of a partial index,
 * settings of the database.
 */
export async function schemaDifferences(schema: Schema): Promise<string[]> {
  const { database, drop } = await freshDatabase(schema);
  try {
    const { dataSource } = database;
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    const { rows } = await database.query<{ tablename: string }>(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL ($1) ORDER BY 1",
      [['migrations', ...dataSource.entityMetadatas.map(({ tableName }) => tableName)]],
    );
    return [...upQueries.map(({ query }) => query), ...rows.map(({ tablename }) => `table ${tablename} has no entity`)];
  } finally {
    await drop();
  }
}
