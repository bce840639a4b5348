import { Injectable } from '@nestjs/common';
import type { RunRequest } from '#contracts';
import { Database } from '#database';
import { addToOutbox } from '#outbox';
import type { DedupeState } from '../source-state/dedupe.js';
import { TimersRepository } from '../timers/timers.repository.js';
import type { RunEffects } from './run-effects.js';
import { SourceDb, SourceDedupe } from '../source-state/source-state.entity.js';

const FORGET_BATCH = 10_000;

/** Prepared SQL: all of it runs for each run, and `finish` is the one transaction of a run. */
@Injectable()
export class RunsRepository {
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
  async finish(
    { run_id: runId, source_id: sourceId, trigger }: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>,
    { db, dedupe, waiting, records, usage, final }: RunEffects,
  ): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query({
        name: 'run-finish',
        text: 'INSERT INTO run_done (run_id) VALUES ($1) ON CONFLICT DO NOTHING',
        values: [runId],
      });
      if (rowCount === 0) return false;
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

  /** There is nothing to write of this run, and it's not to be asked for again. */
  async leaveOut({ run_id, source_id, trigger }: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>): Promise<void> {
    if (trigger === 'timer') await this.timers.resume(this.database, source_id, run_id);
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
