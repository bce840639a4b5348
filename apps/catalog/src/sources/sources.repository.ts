import { Injectable } from '@nestjs/common';
import { emitterChanged, type EmitterState, type SourceId, type UserId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Session, type Transaction, UNIQUE_VIOLATION } from '#database';
import { recordOf } from '#messaging';
import { addToOutbox } from '#outbox';
import { freeSlug } from './slug.js';
import { type SourceChange, type SourceRow, sourceState } from './source.entity.js';

/** A SourceRow of a row of `source`. */
const sourceFrom = (rows: string): string => `SELECT s.id, s.owner_id, s.component_id, c.code_hash, s.name, s.name_slug,
    k.description -> 'configurable_props' AS props, k.description -> 'hooks' AS hooks,
    s.configured_props, s.schedules, s.endpoint_key, s.active, s.version, s.created_at, s.updated_at
  FROM ${rows} s JOIN component c ON c.id = s.component_id JOIN code k ON k.hash = c.code_hash`;
const SOURCE = sourceFrom('source');

/** The columns component_id, name, name_slug, configured_props, schedules, endpoint_key and active. */
const written = (change: SourceChange, slug: string): unknown[] => [
  change.component_id,
  change.name,
  slug,
  JSON.stringify(change.configured_props),
  JSON.stringify(change.schedules),
  change.endpoint_key,
  change.active,
];

/** Sources and the facts of their changes: a row and its fact are one transaction. */
@Injectable()
export class SourcesRepository {
  constructor(private readonly database: Database) {}

  async find(ownerId: UserId, id: SourceId, session: Session = this.database): Promise<SourceRow | undefined> {
    const { rows } = await session.query<SourceRow>({
      name: 'source-find',
      text: `${SOURCE} WHERE s.owner_id = $1 AND s.id = $2`,
      values: [ownerId, id],
    });
    return rows[0];
  }

  list(ownerId: UserId, page: KeysetPage): Promise<{ rows: SourceRow[]; total: number }> {
    return readKeysetPage<SourceRow>(this.database, { select: SOURCE, where: 's.owner_id = $1', values: [ownerId], id: 's.id' }, page);
  }

  /** Creates the source; one of this id that exists already is left as it is. */
  async create(ownerId: UserId, id: SourceId, change: SourceChange): Promise<SourceRow> {
    return this.database.transaction(async (transaction) => {
      const made =
        (await this.insert(transaction, ownerId, id, change, change.slug)) ?? (await this.insertBeside(transaction, ownerId, id, change));
      if (made) await this.tell(transaction, sourceState(made));
      return made ?? this.reread(transaction, ownerId, id);
    });
  }

  /** Changes the source; `decide` sees the row, locked, and may throw. Undefined when the owner has no such source. */
  async update(ownerId: UserId, id: SourceId, decide: (row: SourceRow) => SourceChange): Promise<SourceRow | undefined> {
    for (;;) {
      try {
        return await this.tryUpdate(ownerId, id, decide);
      } catch (error) {
        // a create has taken the slug that was free a moment ago
        if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error;
      }
    }
  }

  private tryUpdate(ownerId: UserId, id: SourceId, decide: (row: SourceRow) => SourceChange): Promise<SourceRow | undefined> {
    return this.database.transaction(async (transaction) => {
      await transaction.query('SELECT FROM source WHERE owner_id = $1 AND id = $2 FOR UPDATE', [ownerId, id]);
      const before = await this.find(ownerId, id, transaction);
      if (!before) return undefined;
      const change = decide(before);
      const slug = await this.reserveSlug(transaction, ownerId, id, change.slug);
      await transaction.query(
        `UPDATE source SET component_id = $3, name = $4, name_slug = $5, configured_props = $6, schedules = $7,
           endpoint_key = coalesce(endpoint_key, $8), active = $9, version = version + 1, updated_at = now()
         WHERE id = $1 AND owner_id = $2`,
        [id, ownerId, ...written(change, slug)],
      );
      const row = await this.reread(transaction, ownerId, id);
      await this.tell(transaction, sourceState(row));
      return row;
    });
  }

  /** Makes the source inactive; nothing else of it changes. Undefined when it was inactive, or the owner has no such source. */
  async switchOff(ownerId: UserId, id: SourceId): Promise<EmitterState | undefined> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query(
        'UPDATE source SET active = false, version = version + 1, updated_at = now() WHERE owner_id = $1 AND id = $2 AND active',
        [ownerId, id],
      );
      if (rowCount !== 1) return undefined;
      const state = sourceState(await this.reread(transaction, ownerId, id));
      await this.tell(transaction, state);
      return state;
    });
  }

  /** Removes the source and returns its last state. Undefined when the owner has no such source. */
  async delete(ownerId: UserId, id: SourceId): Promise<EmitterState | undefined> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query('SELECT FROM source WHERE owner_id = $1 AND id = $2 FOR UPDATE', [ownerId, id]);
      if (rowCount === 0) return undefined;
      const row = await this.reread(transaction, ownerId, id);
      await transaction.query('DELETE FROM source WHERE owner_id = $1 AND id = $2', [ownerId, id]);
      const state = sourceState({ ...row, version: row.version + 1 }, { deleted: true });
      await this.tell(transaction, state);
      return state;
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

  /** Inserts the source unless its id or the slug is taken. */
  private async insert(
    transaction: Transaction,
    ownerId: UserId,
    id: SourceId,
    change: SourceChange,
    slug: string,
  ): Promise<SourceRow | undefined> {
    const { rows } = await transaction.query<SourceRow>({
      name: 'source-insert',
      text: `WITH made AS (
          INSERT INTO source (id, owner_id, component_id, name, name_slug, configured_props, schedules, endpoint_key, active)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING *
        ) ${sourceFrom('made')}`,
      values: [id, ownerId, ...written(change, slug)],
    });
    return rows[0];
  }

  /** Inserts the source under a slug with a number, unless its id is taken. */
  private async insertBeside(
    transaction: Transaction,
    ownerId: UserId,
    id: SourceId,
    change: SourceChange,
  ): Promise<SourceRow | undefined> {
    for (;;) {
      const slug = await this.reserveSlug(transaction, ownerId, id, change.slug);
      const made = await this.insert(transaction, ownerId, id, change, slug);
      if (made) return made;
      const { rowCount } = await transaction.query('SELECT FROM source WHERE id = $1', [id]);
      // otherwise it's the slug: who finds its own one free does not wait, and may have taken this one
      if (rowCount === 1) return undefined;
    }
  }

  /** The slug, or the first of `-1`, `-2`, … that the account has free. Who needs a number waits here for the others of the account. */
  private async reserveSlug(transaction: Transaction, ownerId: UserId, id: SourceId, slug: string): Promise<string> {
    await transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`slug ${ownerId}`]);
    const { rows } = await transaction.query<{ name_slug: string }>(
      // '.' follows '-': a range of the index
      'SELECT name_slug FROM source WHERE owner_id = $1 AND id <> $2 AND (name_slug = $3 OR (name_slug > $3 AND name_slug < $4))',
      [ownerId, id, slug, `${slug}.`],
    );
    return freeSlug(slug, new Set(rows.map(({ name_slug }) => name_slug)));
  }

  private async reread(transaction: Transaction, ownerId: UserId, id: SourceId): Promise<SourceRow> {
    const row = await this.find(ownerId, id, transaction);
    if (!row) throw new Error(`source ${id} is not the owner's`);
    return row;
  }

  private tell(transaction: Transaction, state: EmitterState): Promise<void> {
    return addToOutbox(transaction, [recordOf(emitterChanged, state, state.emitter_id)]);
  }
}
