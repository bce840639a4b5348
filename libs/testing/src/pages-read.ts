import type { Session } from '#database';

/**
 * Runs `work` with generic plans, which PostgreSQL may choose for prepared statements: they suit the average account, not the one concerned. Returns how many
 * pages of tables and indexes it has read. All statements use one connection.
 */
export async function pagesRead(database: Pick<Session, 'query'>, work: () => Promise<unknown>): Promise<number> {
  await database.query('SET plan_cache_mode = force_generic_plan');
  const before = await pages(database);
  await work();
  return (await pages(database)) - before;
}

async function pages(database: Pick<Session, 'query'>): Promise<number> {
  // otherwise, only once in a second
  await database.query('SELECT pg_stat_force_next_flush()');
  const { rows } = await database.query<{ pages: number }>(
    `SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0) + coalesce(toast_blks_read + toast_blks_hit, 0))::bigint AS pages
     FROM pg_statio_user_tables`,
  );
  return rows[0]?.pages ?? 0;
}
