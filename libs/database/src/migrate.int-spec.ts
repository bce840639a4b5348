import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { databaseUrl } from './database.js';
import { ensureDatabase, migrate, schemaState, SchemaTooNew } from './migrate.js';

const server = process.env.SLUICE_TEST_DATABASE_URL!;
let name: string;
let folder: string;

beforeEach(async () => {
  name = `migrate_${randomBytes(6).toString('hex')}`;
  folder = await mkdtemp(join(tmpdir(), 'sluice-migrations-'));
  await add('0001-one.sql', 'CREATE TABLE one (id int)');
  await add('0002-two.sql', 'CREATE TABLE two (id int)');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  await query(server, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
});

const add = (file: string, sql: string) => writeFile(join(folder, file), sql);

async function query(url: string, sql: string): Promise<any[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
const tables = async () =>
  (await query(databaseUrl(server, name), "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")).map(
    ({ tablename }) => tablename,
  );

describe('migrations', () => {
  it('are all reported as missing in a database that does not exist', async () => {
    expect(await schemaState(server, name, folder)).toEqual({ missing: ['0001-one.sql', '0002-two.sql'], unknown: [] });
  });

  it('are applied once, even by several processes at the same time', async () => {
    await Promise.all([ensureDatabase(server, name), ensureDatabase(server, name)]);
    const applied = await Promise.all([1, 2, 3].map(() => migrate(server, name, folder)));
    expect(applied.flat().sort()).toEqual(['0001-one.sql', '0002-two.sql']);
    expect(await schemaState(server, name, folder)).toEqual({ missing: [], unknown: [] });
    expect(await tables()).toEqual(['migration', 'one', 'two']);
  });

  it('leave nothing behind when one fails, and keep those before it', async () => {
    await ensureDatabase(server, name);
    await add('0002-two.sql', 'CREATE TABLE two (id int); CREATE TABLE three (id nonsense)');
    await expect(migrate(server, name, folder)).rejects.toThrow('nonsense');
    expect(await tables()).toEqual(['migration', 'one']);
    expect(await schemaState(server, name, folder)).toEqual({ missing: ['0002-two.sql'], unknown: [] });
  });

  it('refuse a schema that a newer version has created, and change nothing', async () => {
    await ensureDatabase(server, name);
    await migrate(server, name, folder);
    await rm(join(folder, '0002-two.sql'));
    await add('0003-three.sql', 'CREATE TABLE three (id int)');
    await expect(migrate(server, name, folder)).rejects.toThrow(SchemaTooNew);
    expect(await tables()).toEqual(['migration', 'one', 'two']);
    expect(await schemaState(server, name, folder)).toEqual({ missing: ['0003-three.sql'], unknown: ['0002-two.sql'] });
  });
});
