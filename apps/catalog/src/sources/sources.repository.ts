import { Injectable } from '@nestjs/common';
import { emitterChanged, type EmitterState, type SourceId, type UserId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Session, type Transaction } from '#database';
import { factRecord } from '#messaging';
import { addToOutbox } from '#outbox';
import { freeSlug } from './slug.js';
import { type SourceChange, type SourceRow, sourceState } from './source.entity.js';

const SOURCE = `SELECT s.id, s.owner_id, s.component_id, c.code_hash, k.description -> 'configurable_props' AS props, s.name, s.name_slug,
    s.configured_props, s.schedules, s.endpoint_key, s.active, s.version, s.created_at, s.updated_at
  FROM source s JOIN component c ON c.id = s.component_id JOIN code k ON k.hash = c.code_hash`;

/** Sources and the facts of their changes: a row and its fact are one transaction. */
@Injectable()
export class SourcesRepository {
  constructor(private readonly database: Database) {}

  async find(ownerId: UserId, id: SourceId, session: Session = this.database): Promise<SourceRow | undefined> {
    const { rows } = await session.query<SourceRow>(`${SOURCE} WHERE s.owner_id = $1 AND s.id = $2`, [ownerId, id]);
    return rows[0];
  }

  list(ownerId: UserId, page: KeysetPage): Promise<{ rows: SourceRow[]; total: number }> {
    return readKeysetPage<SourceRow>(this.database, { select: SOURCE, where: 's.owner_id = $1', values: [ownerId], id: 's.id' }, page);
  }

  /** Creates the source; one of this id that exists already is left as it is. */
  async create(ownerId: UserId, id: SourceId, change: SourceChange): Promise<SourceRow> {
    return this.database.transaction(async (transaction) => {
      const slug = await this.reserveSlug(transaction, ownerId, id, change.slug);
      const { rowCount } = await transaction.query(
        `INSERT INTO source (id, owner_id, component_id, name, name_slug, configured_props, schedules, endpoint_key, active)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`,
        [
          id,
          ownerId,
          change.component_id,
          change.name,
          slug,
          JSON.stringify(change.configured_props),
          JSON.stringify(change.schedules),
          change.endpoint_key,
          change.active,
        ],
      );
      const row = await this.reread(transaction, ownerId, id);
      if (rowCount === 1) await this.tell(transaction, sourceState(row));
      return row;
    });
  }

  /** Changes the source; `decide` sees the row, locked, and may throw. Undefined when the owner has no such source. */
  async update(ownerId: UserId, id: SourceId, decide: (row: SourceRow) => SourceChange): Promise<SourceRow | undefined> {
    return this.database.transaction(async (transaction) => {
      await transaction.query('SELECT FROM source WHERE owner_id = $1 AND id = $2 FOR UPDATE', [ownerId, id]);
      const before = await this.find(ownerId, id, transaction);
      if (!before) return undefined;
      const change = decide(before);
      const slug = await this.reserveSlug(transaction, ownerId, id, change.slug);
      await transaction.query(
        `UPDATE source SET component_id = $3, name = $4, name_slug = $5, configured_props = $6, schedules = $7,
           endpoint_key = coalesce(endpoint_key, $8), active = $9, version = version + 1, updated_at = now()
         WHERE owner_id = $1 AND id = $2`,
        [
          ownerId,
          id,
          change.component_id,
          change.name,
          slug,
          JSON.stringify(change.configured_props),
          JSON.stringify(change.schedules),
          change.endpoint_key,
          change.active,
        ],
      );
      const row = await this.reread(transaction, ownerId, id);
      await this.tell(transaction, sourceState(row));
      return row;
    });
  }

  /** Makes the source inactive; nothing else of it changes. */
  async switchOff(ownerId: UserId, id: SourceId): Promise<void> {
    await this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query(
        'UPDATE source SET active = false, version = version + 1, updated_at = now() WHERE owner_id = $1 AND id = $2 AND active',
        [ownerId, id],
      );
      if (rowCount === 1) await this.tell(transaction, sourceState(await this.reread(transaction, ownerId, id)));
    });
  }

  /** Removes the source. False when the owner has no such source. */
  async delete(ownerId: UserId, id: SourceId): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query('SELECT FROM source WHERE owner_id = $1 AND id = $2 FOR UPDATE', [ownerId, id]);
      if (rowCount === 0) return false;
      const row = await this.reread(transaction, ownerId, id);
      await transaction.query('DELETE FROM source WHERE owner_id = $1 AND id = $2', [ownerId, id]);
      await this.tell(transaction, sourceState({ ...row, version: row.version + 1 }, { deleted: true }));
      return true;
    });
  }

  /** Those of the sources that exist, whoever owns them: for the other rooms, never for a user. */
  async states(ids: string[]): Promise<EmitterState[]> {
    const { rows } = await this.database.query<SourceRow>(`${SOURCE} WHERE s.id = ANY($1)`, [ids]);
    return rows.map((row) => sourceState(row));
  }

  /** The source behind an endpoint, whoever owns it: the key is the secret. */
  async stateByEndpoint(endpointKey: string): Promise<EmitterState | undefined> {
    const { rows } = await this.database.query<SourceRow>(`${SOURCE} WHERE s.endpoint_key = $1`, [endpointKey]);
    return rows[0] && sourceState(rows[0]);
  }

  /** The slug, or the first of `-1`, `-2`, … that the account has free. Creates of one account wait for each other here. */
  private async reserveSlug(transaction: Transaction, ownerId: UserId, id: SourceId, slug: string): Promise<string> {
    await transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`slug ${ownerId}`]);
    const { rows } = await transaction.query<{ name_slug: string }>(
      'SELECT name_slug FROM source WHERE owner_id = $1 AND id <> $2 AND (name_slug = $3 OR starts_with(name_slug, $4))',
      [ownerId, id, slug, `${slug}-`],
    );
    return freeSlug(slug, new Set(rows.map(({ name_slug }) => name_slug)));
  }

  private async reread(transaction: Transaction, ownerId: UserId, id: SourceId): Promise<SourceRow> {
    const row = await this.find(ownerId, id, transaction);
    if (!row) throw new Error(`source ${id} is not the owner's`);
    return row;
  }

  private tell(transaction: Transaction, state: EmitterState): Promise<void> {
    return addToOutbox(transaction, [factRecord(emitterChanged, state, state.emitter_id)]);
  }
}
