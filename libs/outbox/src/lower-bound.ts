import type { PoolClient } from 'pg';

/** How often the bound is raised: each batch steps over what was deleted since then. */
const RAISE_EVERY_MS = 5000;
/** How often all ids are looked at: a person may have made a refused record below the bound sendable again. */
const RESET_EVERY_MS = 300_000;

/** SQL: which records a session with a bound looks at. */
export const ABOVE_BOUND = "id > coalesce(current_setting('sluice.outbox_bound', true), '0')::bigint";

/** Transactions that are adding records, each by its virtual id. INSERT takes this lock before it draws an id, and keeps it until its transaction ends. */
const WRITERS = `
  SELECT DISTINCT virtualtransaction AS id FROM pg_locks
  WHERE relation = 'outbox'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode = 'RowExclusiveLock'`;

/** SQL: the bound if all records up to the id $1 are committed. */
const FIRST_UP_TO = `coalesce((SELECT id - 1 FROM outbox WHERE NOT refused AND ${ABOVE_BOUND} AND id <= $1 ORDER BY id LIMIT 1), $1)`;

/**
 * A bound of the ids of the outbox: no record that can be sent has a lower id, and none will. While an old snapshot exists, such as that of a backup,
 * PostgreSQL keeps the index entries of deleted records, and without a bound each batch would step over all of them.
 *
 *   last id drawn ──► who adds records? ──► all of them have ended ──► bound = the first record up to that id, or the id
 *
 * A transaction can commit a small id late: it has drawn the id before, so it is one of those that add records, and the bound waits for its end. Others draw
 * larger ids. The bound belongs to a session, because another server, such as a standby after a failover, can draw the same ids again.
 */
export class LowerBound {
  /** The session has it, too: see {@link ABOVE_BOUND}. */
  value = 0;
  private waiting: { last: number; writers: string[] } | undefined;
  /** It is the last id, and nothing was sent since then. */
  private isLast = false;
  private raiseAt = 0;
  private resetAt = 0;

  constructor(private readonly session: Pick<PoolClient, 'query'>) {}

  /** Records were sent: the bound can be raised again. */
  sent(): void {
    this.isLast = false;
  }

  /** Raises the bound if it is time for that. The session is in no transaction. */
  async raise(now = performance.now()): Promise<void> {
    if (now >= this.resetAt) {
      this.resetAt = now + RESET_EVERY_MS;
      this.isLast = false;
      await this.set('0');
    }
    if (this.isLast || now < this.raiseAt) return;
    this.raiseAt = now + RAISE_EVERY_MS;
    // in this order: a transaction that has drawn an id up to the last one is among the writers, or has ended
    const last = await this.lastId();
    if (last < this.value) {
      // a person has restarted the ids
      this.waiting = undefined;
      await this.set('0');
    }
    const writers = (await this.session.query<{ id: string }>(WRITERS)).rows.map(({ id }) => id);
    if (this.waiting?.writers.some((id) => writers.includes(id))) return;
    // all records up to that id are committed
    if (this.waiting) await this.set(FIRST_UP_TO, [this.waiting.last]);
    this.waiting = { last, writers };
    this.isLast = this.value === last;
  }

  private async lastId(): Promise<number> {
    const { rows } = await this.session.query<{ last: number | null }>(
      "SELECT pg_sequence_last_value(pg_get_serial_sequence('outbox', 'id')) AS last",
    );
    return rows[0]?.last ?? 0;
  }

  /** @param bound SQL */
  private async set(bound: string, values: number[] = []): Promise<void> {
    const { rows } = await this.session.query<{ bound: string }>(
      `SELECT set_config('sluice.outbox_bound', (${bound})::text, false) AS bound`,
      values,
    );
    this.value = Number(rows[0]?.bound);
  }
}
