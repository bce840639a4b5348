import { Injectable } from '@nestjs/common';
import type { RunRequest } from '#contracts';
import { Database } from '#database';
import { addToOutbox } from '#outbox';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import type { RunEffects } from './run-effects.js';

const DELETE_BATCH = 10_000;

/** `finish` is the one transaction of a run. Prepared SQL: each run executes it. */
@Injectable()
export class RunsRepository {
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
      await this.state.writeDb(transaction, sourceId, db);
      if (dedupe) await this.state.writeDedupe(transaction, sourceId, dedupe);
      await this.waiting.add(transaction, sourceId, waiting);
      if (trigger === 'timer') await this.timers.resume(transaction, sourceId, runId);
      await addToOutbox(transaction, records);
      if (final) await this.state.delete(transaction, sourceId);
      // last: the runs of an account wait for each other from here until the transaction ends
      if (usage) await this.quotas.count(transaction, usage);
      return true;
    });
  }

  /** Ends a run that was not executed. */
  async leaveOut({ run_id, source_id, trigger }: Pick<RunRequest, 'run_id' | 'source_id' | 'trigger'>): Promise<void> {
    if (trigger === 'timer') await this.timers.resume(this.database, source_id, run_id);
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
