import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { Database, ensureDatabase, migrate } from '#database';
import { createLog } from '#observability';

export interface FreshDatabase {
  database: Database;
  /** Of the server. */
  url: string;
  /** Closes the connections and removes the database. */
  drop(): Promise<void>;
}

/**
 * A database of one's own, in the shape that the app's migrations give it.
 *
 * @param app as its database is called: `event_store`
 * @param options.url of the server; by default that of this run of the tests
 */
export async function freshDatabase(
  app: string,
  { url = process.env.SLUICE_TEST_DATABASE_URL ?? '', ...pool }: { url?: string } & pg.PoolConfig = {},
): Promise<FreshDatabase> {
  const name = `${app}_${randomBytes(6).toString('hex')}`;
  await ensureDatabase(url, name);
  // npm runs its scripts, and with them jest and the benches, in the root of the repository
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
