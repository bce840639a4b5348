import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { databaseUrl } from './database.js';

/** Makes the database when it's missing. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    // names are our own constants; an identifier can't be a parameter
    if (rowCount === 0) await client.query(`CREATE DATABASE "${name}" TEMPLATE template0 ENCODING 'UTF8'`);
  } catch (error) {
    // another replica was faster
    if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error;
  } finally {
    await client.end();
  }
}

/**
 * Brings a database to the newest shape: the `*.sql` files of the folder in the order of their names, each once, each in
 * a transaction. Several processes may call it at once. Returns the names of the files that it applied.
 */
export async function migrate(serverUrl: string, name: string, folder: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl(serverUrl, name) });
  await client.connect();
  const applied: string[] = [];
  try {
    await client.query("SELECT pg_advisory_lock(hashtext('sluice.migrate'))");
    await client.query('CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())');
    const { rows } = await client.query<{ name: string }>('SELECT name FROM migration');
    const known = new Set(rows.map((row) => row.name));
    for (const file of (await readdir(folder)).filter((entry) => entry.endsWith('.sql')).sort()) {
      if (known.has(file)) continue;
      await client.query('BEGIN');
      await client.query(await readFile(join(folder, file), 'utf8'));
      await client.query('INSERT INTO migration (name) VALUES ($1)', [file]);
      await client.query('COMMIT');
      applied.push(file);
    }
    return applied;
  } finally {
    await client.end();
  }
}
