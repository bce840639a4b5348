import { Injectable } from '@nestjs/common';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { SourceId } from '#contracts';
import { BYTEWISE_TEXT, Database, together, type Transaction } from '#database';
import { deletionOfDeletedSources } from '../deleted-sources.js';
import type { DedupeState } from './dedupe.js';

/** An entry of a source's `this.db`. */
@Entity('source_db')
export class SourceDb {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn(BYTEWISE_TEXT)
  key!: string;

  /** JSON text. */
  @Column('text')
  value!: string;
}

/** The dedupe state of a source. */
@Entity('source_dedupe')
export class SourceDedupe {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @Column('json')
  state!: DedupeState;
}

/** SQL that deletes the state of a source ($1). */
export const DELETE_STATE = ['DELETE FROM source_db WHERE source_id = $1', 'DELETE FROM source_dedupe WHERE source_id = $1'];

/** The only writer of the tables `source_db` and `source_dedupe`: the state that sources keep between runs. Prepared SQL: each run reads and writes it. */
@Injectable()
export class SourceStateRepository {
  constructor(private readonly database: Database) {}

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

  /** Changes `this.db`. @param changes JSON text by key; null deletes the key */
  async writeDb(transaction: Transaction, sourceId: string, changes: Record<string, string | null>): Promise<void> {
    const written = Object.entries(changes).filter((entry): entry is [string, string] => entry[1] !== null);
    const removed = Object.keys(changes).filter((key) => changes[key] === null);
    if (written.length > 0) {
      await transaction.query({
        name: 'source-db-put',
        text: `INSERT INTO source_db (source_id, key, value) SELECT $1, * FROM unnest($2::text[], $3::text[])
               ON CONFLICT (source_id, key) DO UPDATE SET value = excluded.value`,
        values: [sourceId, written.map(([key]) => key), written.map(([, value]) => value)],
      });
    }
    if (removed.length > 0) await transaction.query('DELETE FROM source_db WHERE source_id = $1 AND key = ANY($2)', [sourceId, removed]);
  }

  async writeDedupe(transaction: Transaction, sourceId: string, state: DedupeState): Promise<void> {
    await transaction.query({
      name: 'source-dedupe-put',
      text: 'INSERT INTO source_dedupe (source_id, state) VALUES ($1, $2) ON CONFLICT (source_id) DO UPDATE SET state = excluded.state',
      values: [sourceId, JSON.stringify(state)],
    });
  }

  async delete(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.query({ name: 'source-state-delete', text: together(...DELETE_STATE), values: [sourceId] });
  }

  /** Deletes the state that runs have written after their source was deleted. A last hook that waits still reads it. */
  async deleteOfDeleted(): Promise<void> {
    for (const table of ['source_db', 'source_dedupe'])
      await this.database.query(deletionOfDeletedSources(table, 'NOT EXISTS (SELECT FROM queued_run WHERE source_id = source.id)'));
  }
}
