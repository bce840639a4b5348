import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { freshDatabase, type FreshDatabase } from '#testing';
import { schema } from './database/schema.js';
import { deletionOfDeletedSources } from './deleted-sources.js';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase(schema);
});
afterAll(() => fresh?.drop());

const TABLES = ['finished_run', 'source_db', 'source_dedupe', 'waiting_emit', 'retried_run'];
const DELETION = deletionOfDeletedSources('source_db');
const keysLeft = async () =>
  (await fresh.database.query<{ key: string }>('SELECT key FROM source_db ORDER BY key')).rows.map(({ key }) => key);

describe('the rows of deleted sources', () => {
  beforeEach(async () => {
    await fresh.database.query(`TRUNCATE deployment, ${TABLES.join()} CASCADE`);
    await fresh.database.query(
      `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
       VALUES ('dc_2', 'u_1', true, 1, 'h', '{}', '{}', 'n'), ('dc_4', 'u_1', false, 1, 'h', '{}', '{}', 'n')`,
    );
    await fresh.database.query(
      `INSERT INTO source_db (source_id, key, value) SELECT 'dc_' || n, n || letter, '1' FROM generate_series(1, 5) AS n, unnest('{a,b}'::text[]) AS letter`,
    );
  });

  it('are deleted, but not those of sources that exist', async () => {
    await fresh.database.query(DELETION);
    expect(await keysLeft()).toEqual(['2a', '2b', '4a', '4b']);
    await fresh.database.query(DELETION);
    expect(await keysLeft()).toHaveLength(4);
  });

  it('are left to the replica that deletes them at this moment', async () => {
    await fresh.database.transaction(async (transaction) => {
      await transaction.query(DELETION.replace('DELETE FROM source_db', 'DELETE FROM source_dedupe'));
      await fresh.database.query(DELETION);
    });
    expect(await keysLeft()).toHaveLength(10);
  });

  it.each(TABLES)('are found by an index in %s', async (table) => {
    await fresh.database.query(
      `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, name_slug)
       SELECT 'dc_1' || n, 'u_1', true, 1, 'h', '{}', '{}', 'n' FROM generate_series(1, 2000) AS n`,
    );
    await fresh.database.query(ROWS[table]!);
    await fresh.database.query(`ANALYZE deployment, ${table}`);
    const { rows } = await fresh.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${deletionOfDeletedSources(table)}`);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(new RegExp(`Index Only Scan .*${table}`));
    expect(plan).not.toContain(`Seq Scan on ${table}`);
  });
});

/** Inserts ten rows of each of 2000 sources. */
const OF_SOURCES = 'FROM generate_series(1, 2000) AS n, generate_series(1, 10) AS k';
const ROWS: Record<string, string> = {
  finished_run: `INSERT INTO finished_run (run_id, source_id, trigger, method, status, started_at, duration_ms, emitted)
                 SELECT 'r' || n || k, 'dc_1' || n, 'timer', 'run', 'failed', now(), 1, 1 ${OF_SOURCES}`,
  source_db: `INSERT INTO source_db (source_id, key, value) SELECT 'dc_1' || n, 'k' || k, '1' ${OF_SOURCES}`,
  source_dedupe: `INSERT INTO source_dedupe (source_id, state) SELECT 'dc_1' || n, '{}' FROM generate_series(1, 2000) AS n`,
  waiting_emit: `INSERT INTO waiting_emit (emit_id, source_id, due_at, headers, value) SELECT 'e' || n || '-' || k, 'dc_1' || n, now(), '{}', '1' ${OF_SOURCES}`,
  retried_run: `INSERT INTO retried_run (first_run_id, source_id, due_at, request) SELECT 'r' || n || '-' || k, 'dc_1' || n, now(), '{}' ${OF_SOURCES}`,
};
