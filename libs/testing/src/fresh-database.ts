import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { Database, ensureDatabase, migrate } from '#database';
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
 * @param app the name of the app's database, such as `event_store`
 * @param options.url of the server; default: the server of this test run
 */
export async function freshDatabase(
  app: string,
  { url = process.env.SLUICE_TEST_DATABASE_URL ?? '', ...pool }: { url?: string } & pg.PoolConfig = {},
): Promise<FreshDatabase> {
  const name = `${app}_${randomBytes(6).toString('hex')}`;
  await ensureDatabase(url, name);
  // npm runs its scripts, and so jest and the benches, in the root of the repository
  await migrate(url, name, join(process.cwd(), 'apps', app.replaceAll('_', '-'), 'src/database/migrations'));
  const database = new Database(url, name, createLog('test', 'silent'), pool);
  const drop = async () => {
    await database.pool.end();
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
