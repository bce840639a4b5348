import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { FinishedRun, RunRequest } from '#contracts';
import { Database, type Session } from '#database';
import { addToOutbox } from '#outbox';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import { FinishedRunRow } from './finished-run.entity.js';
import type { RunEffects } from './run-effects.js';
import type { RunEntry } from './run-history.js';

const DELETE_BATCH = 10_000;
/** As many runs of a source are listed. */
const LISTED = 100;

/** The window of a page, by positions. */
export interface RunsPage {
  limit: number;
  after?: number;
  before?: number;
}

/** `finish` is the one transaction of a run. Prepared SQL: each run executes it. */
@Injectable()
export class RunsRepository {
  private readonly trims = new TrimCounter();

  constructor(
    private readonly database: Database,
    private readonly timers: TimersRepository,
    private readonly state: SourceStateRepository,
    private readonly waiting: WaitingEmitsRepository,
    private readonly quotas: QuotasRepository,
  ) {}

  async isDone(runId: string): Promise<boolean> {
    const { rowCount } = await this.database.query({ name: 'run-done', text: 'SELECT FROM run_done WHERE run_id = $1', values: [runId] });
    return rowCount === 1;
  }

  /** Writes the run's effects, each table through its repository. Returns false if they are already written: a run is executed at least once. */
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
      await this.state.writeDb(transaction, sourceId, db);
      if (dedupe) await this.state.writeDedupe(transaction, sourceId, dedupe);
      await this.waiting.add(transaction, sourceId, waiting);
      if (trigger === 'timer') await this.timers.resume(transaction, sourceId, runId);
      await addToOutbox(transaction, records);
      if (final) {
        await this.state.delete(transaction, sourceId);
        await transaction.rows(FinishedRunRow).delete({ source_id: sourceId });
      }
      // last, because from here on the runs of an account wait for each other until the transaction ends
      if (usage) await this.quotas.count(transaction, usage);
      return true;
    });
  }

  /** Ends a run that was not executed. @param entry null if its source does not exist */
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

  /** Those of an account's runs that have ended: with their status if they are still listed. */
  async findEnded(ownerId: string, runIds: string[]): Promise<{ id: string; status: FinishedRun['status'] | null }[]> {
    const { rows } = await this.database.query<{ id: string; status: FinishedRun['status'] | null }>({
      name: 'runs-ended',
      text: `SELECT done.run_id AS id, listed.status
             FROM run_done done LEFT JOIN (finished_run listed JOIN deployment d ON d.source_id = listed.source_id AND d.owner_id = $1)
               ON listed.run_id = done.run_id
             WHERE done.run_id = ANY ($2)`,
      values: [ownerId, runIds],
    });
    return rows;
  }

  /** Stores that the run has ended; returns false if that is already stored. One statement for both rows, because every run needs it. */
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
  async deleteOfDeleted(): Promise<void> {
    await this.database.query('DELETE FROM finished_run f WHERE NOT EXISTS (SELECT FROM deployment d WHERE d.source_id = f.source_id)');
  }

  /** Deletes the ids of runs that cannot be repeated, because Kafka has deleted their records. */
  async deleteDone(olderThanDays: number): Promise<void> {
    // in batches: a day of a busy system has millions
    for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH;) {
      const { rowCount } = await this.database.query(
        `DELETE FROM run_done WHERE run_id IN (
           SELECT run_id FROM run_done WHERE finished_at < now() - $1 * interval '1 day' ORDER BY finished_at LIMIT ${DELETE_BATCH})`,
        [olderThanDays],
      );
      deleted = rowCount ?? 0;
    }
  }
}

/** A source's list of runs is trimmed after as many runs. */
const EVERY = 50;
const SOURCES = 10_000;

/** Counts the runs of sources, so that their lists are trimmed periodically and not after each run. */
class TrimCounter {
  private readonly since = new LRUCache<string, number>({ max: SOURCES });

  isDue(sourceId: string): boolean {
    // an unknown source is due at once, because a restart loses the counts
    const count = (this.since.get(sourceId) ?? EVERY) + 1;
    this.since.set(sourceId, count > EVERY ? 1 : count);
    return count > EVERY;
  }

  /** The trim failed. */
  again(sourceId: string): void {
    this.since.delete(sourceId);
  }
}
