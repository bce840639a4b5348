import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { createLog } from '#observability';
import { databaseUrl } from './data-source.js';
import { ensureDatabase, migrate, Migration, schemaState, SchemaTooNew } from './migrate.js';

const server = process.env.SLUICE_TEST_DATABASE_URL!;
const log = createLog('test', 'silent');
let name: string;

beforeEach(() => {
  name = `migrate_${randomBytes(6).toString('hex')}`;
});
afterEach(() => query(server, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`));

class CreateOne1000000000001 extends Migration {
  readonly sql = 'CREATE TABLE one (id int)';
}
class CreateTwo1000000000002 extends Migration {
  readonly sql: string = 'CREATE TABLE two (id int); CREATE INDEX two_id ON two (id)';
}
class CreateThree1000000000003 extends Migration {
  readonly sql = 'CREATE TABLE three (id int)';
}
const ONE = 'CreateOne1000000000001';
const TWO = 'CreateTwo1000000000002';
const THREE = 'CreateThree1000000000003';
const schema = { migrations: [CreateOne1000000000001, CreateTwo1000000000002] };

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

describe('a new database', () => {
  it('sorts text by bytes and knows the letters of all languages, with a locale that is part of PostgreSQL', async () => {
    await ensureDatabase(server, name);
    const rows = await query(
      databaseUrl(server, name),
      `SELECT datlocprovider AS provider, datlocale AS locale, lower('ÄΣ') AS lower, 'ä' ~ '^[[:alpha:]]$' AS letter,
         (SELECT string_agg(t, '' ORDER BY t) FROM unnest('{b,ä,B,_}'::text[]) AS t) AS sorted
       FROM pg_database WHERE datname = current_database()`,
    );
    expect(rows).toEqual([{ provider: 'b', locale: 'C.UTF-8', lower: 'äσ', letter: true, sorted: 'B_bä' }]);
  });
});

describe('migrations', () => {
  it('are all reported as missing in a database that does not exist', async () => {
    expect(await schemaState(server, name, schema)).toEqual({ missing: [ONE, TWO], unknown: [] });
  });

  it('are applied once, even by several processes at the same time', async () => {
    await Promise.all([ensureDatabase(server, name), ensureDatabase(server, name)]);
    const applied = await Promise.all([1, 2, 3].map(() => migrate(server, name, schema, log)));
    expect(applied.flat()).toEqual([ONE, TWO]);
    expect(await schemaState(server, name, schema)).toEqual({ missing: [], unknown: [] });
    expect(await tables()).toEqual(['migrations', 'one', 'two']);
  });

  it('do not let the statements of services wait while something else, such as a dump, has a table', async () => {
    await ensureDatabase(server, name);
    await migrate(server, name, { migrations: [CreateOne1000000000001] }, log);
    class AlterOne1000000000002 extends Migration {
      readonly sql = 'ALTER TABLE one ADD COLUMN more int';
    }
    const dump = new pg.Client({ connectionString: databaseUrl(server, name) });
    await dump.connect();
    await dump.query('BEGIN; LOCK TABLE one IN ACCESS SHARE MODE');
    const migrated = migrate(server, name, { migrations: [CreateOne1000000000001, AlterOne1000000000002] }, log);
    // more than once, so that one of them comes while the migration waits
    for (let n = 0; n < 30; n++) {
      expect(await query(databaseUrl(server, name), 'SELECT id FROM one')).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await dump.end();
    expect(await migrated).toEqual(['AlterOne1000000000002']);
    expect(await query(databaseUrl(server, name), 'SELECT more FROM one')).toEqual([]);
  });

  it('leave nothing behind when one fails, and keep those before it', async () => {
    await ensureDatabase(server, name);
    class CreateTwoBadly1000000000002 extends Migration {
      readonly sql = 'CREATE TABLE two (id int); CREATE TABLE three (id nonsense)';
    }
    const bad = { migrations: [CreateOne1000000000001, CreateTwoBadly1000000000002] };
    await expect(migrate(server, name, bad, log)).rejects.toThrow('nonsense');
    expect(await tables()).toEqual(['migrations', 'one']);
    expect(await schemaState(server, name, bad)).toEqual({ missing: [CreateTwoBadly1000000000002.name], unknown: [] });
  });

  it('refuse a schema that a newer version has created, and change nothing', async () => {
    await ensureDatabase(server, name);
    await migrate(server, name, schema, log);
    const other = { migrations: [CreateOne1000000000001, CreateThree1000000000003] };
    await expect(migrate(server, name, other, log)).rejects.toThrow(SchemaTooNew);
    expect(await tables()).toEqual(['migrations', 'one', 'two']);
    expect(await schemaState(server, name, other)).toEqual({ missing: [THREE], unknown: [TWO] });
  });
});
