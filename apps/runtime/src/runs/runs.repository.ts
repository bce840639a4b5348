import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { OutgoingRecord } from '#messaging';
import { addToOutbox } from '#outbox';
import type { DedupeState } from './dedupe.js';

/** All effects of a run: written together or not at all. */
export interface RunEffects {
  /** JSON text by changed key; null: gone. */
  db: Record<string, string | null>;
  dedupe: DedupeState | null;
  records: OutgoingRecord[];
}

@Injectable()
export class RunsRepository {
  constructor(private readonly database: Database) {}

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
  async finish(runId: string, sourceId: string, { db, dedupe, records }: RunEffects): Promise<boolean> {
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
      await addToOutbox(transaction, records);
      return true;
    });
  }

  /** Forgets runs that nobody can ask for again: their requests have left the log. */
  async forgetDone(olderThanDays: number): Promise<void> {
    await this.database.query("DELETE FROM run_done WHERE finished_at < now() - $1 * interval '1 day'", [olderThanDays]);
  }
}
