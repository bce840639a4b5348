import { Injectable } from '@nestjs/common';
import type { RunRequest } from '#contracts';
import { Database, type Session } from '#database';
import { addToOutbox } from '#outbox';
import type { DedupeState } from './dedupe.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { FinishedRunRow } from './finished-run.entity.js';
import type { RunEffects } from './run-effects.js';
import type { RunEntry } from './run-history.js';
import { SourceDb, SourceDedupe } from './source-state.entity.js';
import { TrimCounter } from './trim-counter.js';

const FORGET_BATCH = 10_000;
/** As many runs of a source are listed. */
const LISTED = 100;

/** The window of a page, by positions. */
export interface RunsPage {
  limit: number;
  after?: number;
  before?: number;
}

/** Prepared SQL: all of it runs for each run, and `finish` is the one transaction of a run. */
@Injectable()
export class RunsRepository {
  private readonly trims = new TrimCounter();

  constructor(
    private readonly database: Database,
    private readonly timers: TimersRepository,
  ) {}

  async isDone(runId: string): Promise<boolean> {
    const { rowCount } = await this.database.query({ name: 'run-done', text: 'SELECT FROM run_done WHERE run_id = $1', values: [runId] });
    return rowCount === 1;
  }

  /** A source's `this.db`: JSON text by key. */
  async loadDb(sourceId: string): Promise<Record<string, string>> {
    const { rows } = await this.database.query<{ key: string; value: string }>({
      name: 'source-db',
      text: 'SELECT key, value FROM source_db WHERE source_id = $1',
      values: [sourceId],
    });
    return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
  }

  async loadDedupe(sourceId: string): Promise<DedupeState> {
    const { rows } = await this.database.query<{ state: DedupeState }>({
      name: 'source-dedupe',
      text: 'SELECT state FROM source_dedupe WHERE source_id = $1',
      values: [sourceId],
    });
    return rows[0]?.state ?? {};
  }

  /** Writes the run's effects; false when they are written already, for a run is at least once. */
  async finish(run: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>, effects: RunEffects): Promise<boolean> {
    const written = await this.write(run, effects);
    if (written && effects.entry && this.trims.isDue(run.source_id)) await this.trim(run.source_id);
    return written;
  }

  private async write(
    { run_id: runId, source_id: sourceId, trigger }: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>,
    { db, dedupe, waiting, records, usage, entry, final }: RunEffects,
  ): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      if (!(await this.end(transaction, runId, sourceId, entry))) return false;
      const written = Object.entries(db).filter((entry): entry is [string, string] => entry[1] !== null);
      const removed = Object.keys(db).filter((key) => db[key] === null);
      if (written.length > 0) {
        await transaction.query({
          name: 'source-db-put',
          text: `INSERT INTO source_db (source_id, key, value) SELECT $1, * FROM unnest($2::text[], $3::text[])
                 ON CONFLICT (source_id, key) DO UPDATE SET value = excluded.value`,
          values: [sourceId, written.map(([key]) => key), written.map(([, value]) => value)],
        });
      }
      if (removed.length > 0) await transaction.query('DELETE FROM source_db WHERE source_id = $1 AND key = ANY($2)', [sourceId, removed]);
      if (dedupe) {
        await transaction.query({
          name: 'source-dedupe-put',
          text: 'INSERT INTO source_dedupe (source_id, state) VALUES ($1, $2) ON CONFLICT (source_id) DO UPDATE SET state = excluded.state',
          values: [sourceId, JSON.stringify(dedupe)],
        });
      }
      if (waiting.length > 0) {
        await transaction.query({
          name: 'waiting-put',
          text: `INSERT INTO waiting_emit (emit_id, source_id, due_at, headers, value)
                 SELECT emit_id, $1, to_timestamp(due / 1000.0), headers, value FROM unnest($2::text[], $3::float8[], $4::jsonb[], $5::bytea[]) AS w (emit_id, due, headers, value)`,
          values: [
            sourceId,
            waiting.map(({ emit_id }) => emit_id),
            waiting.map(({ due_at_ms }) => due_at_ms),
            waiting.map(({ record }) => JSON.stringify(record.headers)),
            waiting.map(({ record }) => record.value),
          ],
        });
      }
      if (trigger === 'timer') await this.timers.resume(transaction, sourceId, runId);
      await addToOutbox(transaction, records);
      if (final) {
        await transaction.rows(SourceDb).delete({ source_id: sourceId });
        await transaction.rows(SourceDedupe).delete({ source_id: sourceId });
        await transaction.rows(FinishedRunRow).delete({ source_id: sourceId });
      }
      // last, for the runs of an account wait for each other from here on
      if (usage) {
        await transaction.query({
          name: 'usage-add',
          text: `INSERT INTO usage (account_id, day, compute_ms, invocations) VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, 1)
                 ON CONFLICT (account_id, day) DO UPDATE SET compute_ms = usage.compute_ms + excluded.compute_ms, invocations = usage.invocations + 1`,
          values: [usage.account_id, usage.compute_ms],
        });
      }
      return true;
    });
  }

  /** The run did not take place, and it's not to be asked for again. entry: null if its source does not exist. */
  async leaveOut(
    { run_id, source_id, trigger }: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>,
    entry: RunEntry | null,
  ): Promise<void> {
    if (trigger === 'timer') await this.timers.resume(this.database, source_id, run_id);
    if (entry && (await this.end(this.database, run_id, source_id, entry)) && this.trims.isDue(source_id)) await this.trim(source_id);
  }

  /** The last runs of a source that have ended, newest first, and how many there are. */
  async page(sourceId: string, { limit, after, before }: RunsPage): Promise<{ rows: FinishedRunRow[]; total: number }> {
    const { rows } = await this.database.query<FinishedRunRow>({
      name: 'runs-page',
      text: `SELECT * FROM finished_run WHERE source_id = $1 ORDER BY position DESC LIMIT ${LISTED}`,
      values: [sourceId],
    });
    const within = rows.filter(({ position: at }) => (after === undefined || at < after) && (before === undefined || at > before));
    const backwards = before !== undefined && after === undefined;
    return { rows: backwards ? within.slice(-limit) : within.slice(0, limit), total: rows.length };
  }

  /** Notes that the run has ended; false when that was noted already. One statement for both rows: every run makes it. */
  private async end(session: Session, runId: string, sourceId: string, entry: RunEntry | null): Promise<boolean> {
    const { rowCount } = await session.query(
      entry
        ? {
            name: 'run-finish',
            text: `WITH done AS (INSERT INTO run_done (run_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING run_id)
                   INSERT INTO finished_run (run_id, source_id, trigger, method, status, started_at, duration_ms, emitted, error)
                   SELECT run_id, $2, $3, $4, $5, $6, $7, $8, $9 FROM done`,
            values: [
              runId,
              sourceId,
              entry.trigger,
              entry.method,
              entry.status,
              entry.started_at,
              entry.duration_ms,
              entry.emitted,
              entry.error,
            ],
          }
        : { name: 'run-end', text: 'INSERT INTO run_done (run_id) VALUES ($1) ON CONFLICT DO NOTHING', values: [runId] },
    );
    return rowCount === 1;
  }

  /** Deletes the runs that are not listed any more. What fails is repeated with a later run. */
  private async trim(sourceId: string): Promise<void> {
    await this.database
      .query(
        `DELETE FROM finished_run WHERE source_id = $1 AND position <= (
           SELECT position FROM finished_run WHERE source_id = $1 ORDER BY position DESC OFFSET ${LISTED} LIMIT 1)`,
        [sourceId],
      )
      .catch(() => this.trims.again(sourceId));
  }

  /** Deletes runs of sources that were deleted while the run was under way. */
  async forgetOfDeleted(): Promise<void> {
    await this.database.query('DELETE FROM finished_run f WHERE NOT EXISTS (SELECT FROM deployment d WHERE d.source_id = f.source_id)');
  }

  /** Forgets runs that nobody can ask for again: their requests have left the log. */
  async forgetDone(olderThanDays: number): Promise<void> {
    // in bites: a day of a busy system has millions
    for (let forgotten = FORGET_BATCH; forgotten === FORGET_BATCH;) {
      const { rowCount } = await this.database.query(
        `DELETE FROM run_done WHERE run_id IN (
           SELECT run_id FROM run_done WHERE finished_at < now() - $1 * interval '1 day' ORDER BY finished_at LIMIT ${FORGET_BATCH})`,
        [olderThanDays],
      );
      forgotten = rowCount ?? 0;
    }
  }
}
