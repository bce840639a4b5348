import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { databaseUrl } from './database.js';

/** The folder of an app's migrations: `*.sql` files, applied in the order of their names. */
export const migrationsOf = (app: string): string =>
  // from dist/libs/database/src, and from libs/database/src in tests
  fileURLToPath(
    new URL(`${import.meta.url.includes('/dist/libs/') ? '../' : ''}../../../apps/${app}/src/database/migrations`, import.meta.url),
  );

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
      if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error;
    }
  });
}

/**
 * Brings a database to the newest schema: applies each migration once, in a transaction. Several processes may call it at the same time.
 * Returns the names of the migrations that it applied.
 * @throws SchemaTooNew, having changed nothing
 */
export async function migrate(serverUrl: string, name: string, folder: string): Promise<string[]> {
  return withClient(databaseUrl(serverUrl, name), async (client) => {
    await client.query("SELECT pg_advisory_lock(hashtext('sluice.migrate'))");
    await client.query('CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())');
    const { missing, unknown } = await compare(client, folder);
    if (unknown.length > 0)
      throw new SchemaTooNew(`the schema of database ${name} is newer than this version: it has ${unknown.join(', ')}`);
    for (const file of missing) {
      await client.query('BEGIN');
      await client.query(await readFile(join(folder, file), 'utf8'));
      await client.query('INSERT INTO migration (name) VALUES ($1)', [file]);
      await client.query('COMMIT');
    }
    return missing;
  });
}

/** The migrations that the database lacks, and those that it has but this version does not know. A missing database lacks all of them. */
export async function schemaState(serverUrl: string, name: string, folder: string): Promise<{ missing: string[]; unknown: string[] }> {
  try {
    return await withClient(databaseUrl(serverUrl, name), (client) => compare(client, folder));
  } catch (error) {
    // the database, or its table of migrations, does not exist
    if (!['3D000', '42P01'].includes((error as { code?: string }).code ?? '')) throw error;
    return { missing: await filesIn(folder), unknown: [] };
  }
}

async function compare(client: pg.Client, folder: string): Promise<{ missing: string[]; unknown: string[] }> {
  const files = await filesIn(folder);
  const { rows } = await client.query<{ name: string }>('SELECT name FROM migration ORDER BY name');
  const applied = rows.map((row) => row.name);
  return { missing: files.filter((file) => !applied.includes(file)), unknown: applied.filter((name) => !files.includes(name)) };
}

async function filesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((entry) => entry.endsWith('.sql')).sort();
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  // a connection that breaks between two statements: the next statement fails and reports it
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
