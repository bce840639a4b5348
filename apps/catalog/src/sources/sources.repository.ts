import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository, type SelectQueryBuilder } from 'typeorm';
import {
  type ComponentId,
  type ConnectionId,
  emitterChanged,
  type EmitterState,
  RECORDS_GONE_AFTER_DAYS,
  Invalid,
  NotFound,
  SluiceError,
  type SourceId,
  Unavailable,
  type UserId,
} from '#contracts';
import {
  Database,
  FOREIGN_KEY_VIOLATION,
  type KeysetPage,
  type PagePart,
  readKeysetPage,
  type Session,
  type Transaction,
  UNIQUE_VIOLATION,
} from '#database';
import { type OutgoingRecord, recordOf } from '#messaging';
import { addedToOutbox, addToOutbox, WAKE_RELAY } from '#outbox';
import { Code, ComponentRow } from '../components/component.entity.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { nextVersion, overrule, versionsOf } from '../database/version.js';
import { AccountTurns } from './account-turns.js';
import { ConnectionRow } from './connection.entity.js';
import { ConnectionsRepository } from './connections.repository.js';
import { type UsedCredentials, usedProblem } from './source-connections.js';
import {
  DeletedSourceRow,
  freeSlug,
  type SourceChange,
  SourceRow,
  sourceState,
  SuspendedAccountRow,
  usesConnections,
} from './source.entity.js';

/** The most sources that are changed together. Each may have half a megabyte, because of its props and credentials. */
export const CHANGED_TOGETHER = 50;

/** SQL: of what a list shows of a source. `pg_column_size` reads no value that is stored out of line. */
const SHOWN_BYTES = `pg_column_size(source.configured_props) + coalesce((SELECT sum(pg_column_size(credentials)) FROM connection WHERE source_id = source.id), 0)`;

/** Returns the new state of a source, or null if nothing changes; may throw. It reads in the session what it needs beside the row. */
export type Decide = (row: SourceRow, session: Session) => SourceChange | null | Promise<SourceChange | null>;

/** A row without the component that it runs. */
type BareRow = Omit<SourceRow, 'component'>;

/** The only writer of the tables `source` and `deleted_source`. A row and the fact of its change are one transaction. */
@Injectable()
export class SourcesRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(SourceRow) private readonly sources: Repository<SourceRow>,
    private readonly connections: ConnectionsRepository,
    private readonly components: ComponentsRepository,
    private readonly turns: AccountTurns,
  ) {}

  /** For a program without Nest. */
  static of(database: Database): SourcesRepository {
    return new SourcesRepository(
      database,
      database.rows(SourceRow),
      new ConnectionsRepository(database, database.rows(ConnectionRow)),
      new ComponentsRepository(database, database.rows(ComponentRow), database.rows(Code)),
      new AccountTurns(),
    );
  }

  find(ownerId: UserId, id: SourceId): Promise<SourceRow | undefined> {
    return this.findIn(this.database, ownerId, id);
  }

  /** A page of sources. Of the description of a component, a row has only what a list shows: names, types and secrecy of the props. */
  async list(
    ownerId: UserId,
    page: KeysetPage,
    { externalId, ...part }: PagePart & { externalId?: string } = {},
  ): Promise<{ rows: SourceRow[]; total: number; cut: boolean }> {
    const owned = this.sources.createQueryBuilder('source').where('source.owner_id = :ownerId', { ownerId });
    if (externalId !== undefined) owned.andWhere('source.external_id = :externalId', { externalId });
    const { rows, ...found } = await readKeysetPage(owned, page, { ...part, size: SHOWN_BYTES, join: withComponent });
    // the credentials of shared connections are large, and lists do not show them
    const [inline] = await Promise.all([
      this.connections.inlineOf(rows.map(({ id }) => id)),
      this.components.addDescriptions(rows.map(({ component }) => component)),
    ]);
    for (const row of rows) row.credentials = inline.get(row.id) ?? null;
    return { rows, ...found };
  }

  /** Throws a conflict if another source of the owner has the external id. The index decides; this check avoids work for a source that it would refuse. */
  async requireFree(ownerId: UserId, externalId: string | null | undefined, id: SourceId): Promise<void> {
    if (externalId === null || externalId === undefined) return;
    const taken = await this.sources.findOneBy({ owner_id: ownerId, external_id: externalId });
    if (taken && taken.id !== id) throw externalIdTaken();
  }

  /** Throws a conflict if the account has `most` sources beside this one. `create` decides; this check avoids work for a source that it would refuse. */
  async requireFewer(ownerId: UserId, id: SourceId, most: number, session: Session = this.database): Promise<void> {
    if (most === Infinity) return;
    const others = await session.rows(SourceRow).countBy({ owner_id: ownerId, id: Not(id) });
    if (others >= most) throw new SluiceError('conflict', `this account has ${others} sources; the limit is ${most}`);
  }

  /**
   * Creates the source, unless it exists. Throws a conflict if it was deleted, its external id is taken, its account is suspended or has `most` sources
   * beside it.
   */
  async create(ownerId: UserId, id: SourceId, change: SourceChange, most = Infinity): Promise<SourceRow> {
    return this.ofComponent(change, async () => {
      const isPlain = most === Infinity && !usesConnections(change);
      const made = isPlain ? await this.insertWithFact(ownerId, id, change) : undefined;
      return made ?? this.turns.take(ownerId, () => this.createInSteps(ownerId, id, change, { most, isTried: isPlain }));
    });
  }

  /** For a source of an account with a limit, or that uses connections, or, if it has been tried, that `INSERT` did not insert. */
  private async createInSteps(
    ownerId: UserId,
    id: SourceId,
    change: SourceChange,
    { most, isTried }: { most: number; isTried: boolean },
  ): Promise<SourceRow> {
    return this.database.transaction(async (transaction) => {
      if (most < Infinity) {
        // another create waits until this one is counted
        await transaction.query("SELECT pg_advisory_xact_lock(hashtext('sources'), hashtext($1))", [ownerId]);
        await this.requireFewer(ownerId, id, most, transaction);
      }
      const isConnected = usesConnections(change);
      if (isConnected) await this.connections.hold(transaction, ownerId);
      const first = isTried ? undefined : await this.insert(transaction, ownerId, id, change, change.slug);
      const made = first ?? (await this.insertBeside(transaction, ownerId, id, change));
      if (made && isConnected) made.credentials = await this.connect(transaction, ownerId, id, change);
      if (made) await this.publish(transaction, sourceState(made));
      const row = made ?? (await this.findIn(transaction, ownerId, id));
      if (!row) throw new Error(`source ${id} is not the owner's`);
      return row;
    });
  }

  /**
   * Changes the source. `decide` receives the locked row, and is repeated if necessary. Undefined if the owner has no such source.
   * Throws a conflict if the new external id is taken, or its account is suspended: its hooks would run.
   * @param connected whether the source probably uses connections, before or after the change: they are locked first
   */
  async update(ownerId: UserId, id: SourceId, decide: Decide, connected = false): Promise<SourceRow | undefined> {
    for (let [holds, isRepeated] = [connected, false]; ;) {
      try {
        const attempt = () => this.tryUpdate(ownerId, id, decide, { holds, isRepeated });
        return await (holds ? this.turns.take(ownerId, attempt) : attempt());
      } catch (error) {
        const { code, constraint } = error as { code?: string; constraint?: string };
        if (error instanceof NeedsConnections) holds = true;
        else if (code !== UNIQUE_VIOLATION) throw error;
        else if (constraint === 'source_external_id') throw externalIdTaken();
        // another change has taken the slug
        else isRepeated = true;
      }
    }
  }

  /** `holds`: whether to hold the account's connections, which must be locked before the source. */
  private tryUpdate(
    ownerId: UserId,
    id: SourceId,
    decide: Decide,
    { isRepeated, holds }: { isRepeated: boolean; holds: boolean },
  ): Promise<SourceRow | undefined> {
    return this.database.transaction(async (transaction) => {
      if (holds) await this.connections.hold(transaction, ownerId);
      const before = await this.lock(transaction, ownerId, id);
      if (!before) return undefined;
      const change = await decide(before, transaction);
      if (!change) return before;
      if (before.suspended) throw accountSuspended();
      const isConnected = usesConnections(change) || before.credentials !== null;
      if (isConnected && !holds) throw new NeedsConnections();
      const slug = await this.slugFor(transaction, before, change, isRepeated);
      const endpointKey = before.endpoint_key ?? change.endpoint_key;
      const row = await this.change(transaction, ownerId, id, { ...change, slug, endpoint_key: endpointKey });
      if (isConnected) row.credentials = await this.connect(transaction, ownerId, id, change);
      await this.publish(transaction, sourceState(row));
      return row;
    });
  }

  /** Makes the source inactive and changes nothing else. Undefined if it was inactive, has another version, or the owner has no such source. */
  async switchOff(ownerId: UserId, id: SourceId, version: number): Promise<EmitterState | undefined> {
    return this.database.transaction(async (transaction) => {
      const switched = `UPDATE source SET active = false, version = ${nextVersion('source')}, updated_at = now()
                        WHERE owner_id = $1 AND id = $2 AND version = $3 AND active RETURNING *`;
      return (await this.publishAll(transaction, await transaction.query<BareRow>(switched, [ownerId, id, version])))[0];
    });
  }

  /** Removes the source, and returns it as it was, with its last state. Undefined if the owner has no such source. */
  async delete(ownerId: UserId, id: SourceId): Promise<{ before: SourceRow; state: EmitterState } | undefined> {
    const remove = async (transaction: Transaction) => {
      // before the source: a change of its inline connections locks them in this order
      await this.connections.hold(transaction, ownerId);
      const { rows } = await transaction.query<BareRow & { last: number }>({
        name: 'source-delete',
        text: `DELETE FROM source WHERE owner_id = $1 AND id = $2 RETURNING *, ${nextVersion('source')} AS last`,
        values: [ownerId, id],
      });
      if (!rows[0]) return undefined;
      const { last: version, ...row } = rows[0];
      const before = await this.withComponent(transaction, row);
      await this.connections.deleteInline(transaction, ownerId, id);
      const state = sourceState({ ...before, version }, { deleted: true });
      await this.publishDeleted(transaction, state);
      return { before, state };
    };
    return this.turns.take(ownerId, () => this.database.transaction(remove));
  }

  /**
   * Suspends, or lets continue, the next sources of an account, at most `limit`. It gets no more until it is resumed. Returns the states of those that
   * have changed.
   */
  async suspend(ownerId: UserId, suspended: boolean, limit: number): Promise<EmitterState[]> {
    return this.database.transaction(async (transaction) => {
      const accounts = transaction.rows(SuspendedAccountRow);
      if (suspended) await accounts.createQueryBuilder().insert().values({ owner_id: ownerId }).orIgnore().execute();
      else await accounts.delete({ owner_id: ownerId });
      const changed = await transaction.query<BareRow>(
        `UPDATE source SET suspended = $2, version = ${nextVersion('source')}
         WHERE id IN (SELECT id FROM source WHERE owner_id = $1 AND suspended <> $2 ORDER BY id LIMIT $3) RETURNING *`,
        [ownerId, suspended, limit],
      );
      return this.publishAll(transaction, changed);
    });
  }

  /** The oldest sources of an account, at most `limit`, by their ids alone. */
  ids(ownerId: UserId, limit: number): Promise<Pick<SourceRow, 'id'>[]> {
    return this.sources.find({ select: { id: true }, where: { owner_id: ownerId }, order: { id: 'ASC' }, take: limit });
  }

  /** For an account that is deleted. */
  async forgetSuspension(ownerId: UserId): Promise<void> {
    await this.database.rows(SuspendedAccountRow).delete({ owner_id: ownerId });
  }

  /**
   * Publishes the state of all sources again, under new versions: after a rotation of the keys, the copies in the runtime and in the compacted topic
   * are encrypted under the new key. Returns their number.
   */
  async republish(): Promise<number> {
    for (let [count, after] = [0, '']; ;) {
      const ids = await this.database.transaction(async (transaction) => {
        const { rows } = await transaction.query<{ id: SourceId }>('SELECT id FROM source WHERE id > $1 ORDER BY id LIMIT $2 FOR UPDATE', [
          after,
          CHANGED_TOGETHER,
        ]);
        const ids = rows.map(({ id }) => id);
        // one statement later: a statement that waits for a row would copy the credentials that a connection had before the wait
        const changed = await transaction.query<BareRow>(
          `UPDATE source SET version = ${nextVersion('source')}, credentials = CASE WHEN credentials IS NULL THEN NULL
             ELSE (SELECT jsonb_object_agg(c.id, c.credentials) FROM connection c WHERE source.credentials ? c.id) END
           WHERE id = ANY($1) RETURNING *`,
          [ids],
        );
        await this.publishAll(transaction, changed);
        return ids;
      });
      if (ids.length === 0) return count;
      count += ids.length;
      after = ids.at(-1) ?? '';
    }
  }

  /**
   * Copies changed credentials of a connection to the sources that use it, publishes their states, and returns their ids. Throws Invalid if one of them
   * would use too many bytes. The caller holds the lock of the connections.
   */
  async setCredentials(transaction: Transaction, ownerId: UserId, id: ConnectionId, credentials: string): Promise<SourceId[]> {
    for (const ids: SourceId[] = []; ;) {
      const changed = await transaction.query<BareRow>(
        `UPDATE source SET credentials = jsonb_set(credentials, ARRAY[$2], to_jsonb($3::text)), version = ${nextVersion('source')}
         WHERE id IN (SELECT id FROM source WHERE owner_id = $1 AND id > $4 AND credentials ? $2 ORDER BY id LIMIT $5) RETURNING *`,
        [ownerId, id, credentials, ids.at(-1) ?? '', CHANGED_TOGETHER],
      );
      for (const row of changed.rows) {
        const problem = usedProblem(row.credentials ?? {});
        if (problem !== null)
          throw new Invalid([{ field: 'credentials', message: `credentials are too large: the source ${row.id} would ${problem}` }]);
      }
      await this.publishAll(transaction, changed);
      ids.push(...changed.rows.map((row) => row.id).sort());
      if (changed.rows.length < CHANGED_TOGETHER) return ids;
    }
  }

  /** A source that uses the connection; undefined if none does. */
  async findUser(session: Session, ownerId: UserId, id: ConnectionId): Promise<SourceId | undefined> {
    const { rows } = await session.query<{ id: SourceId }>('SELECT id FROM source WHERE owner_id = $1 AND credentials ? $2 LIMIT 1', [
      ownerId,
      id,
    ]);
    return rows[0]?.id;
  }

  /** The versions of the existing sources among these ids, by id. */
  versions(ids: string[]): Promise<Map<string, number>> {
    return versionsOf(this.sources, ids);
  }

  /**
   * Publishes the stored states of sources of which other services know these newer ones: as deleted, if a source does not exist. Returns how many it has
   * published, and how many of them as deleted.
   */
  async overrule(states: EmitterState[]): Promise<{ published: number; deleted: number }> {
    return this.database.transaction(async (transaction) => {
      const ids = states.map(({ emitter_id }) => emitter_id);
      const versions = states.map(({ version }) => version);
      const { length } = await this.publishAll(
        transaction,
        await transaction.query<BareRow>(`${overrule('source')} RETURNING source.*`, [ids, versions]),
      );
      const existing = await versionsOf(transaction.rows(SourceRow), ids);
      const missing = states.filter(({ emitter_id, deleted }) => !deleted && !existing.has(emitter_id));
      for (const { suspended: _, ...state } of missing)
        await this.publishDeleted(transaction, { ...state, active: false, deleted: true, version: state.version + 1 });
      return { published: length + missing.length, deleted: missing.length };
    });
  }

  /** Inserts the source under this slug. Undefined if `INSERT` does not insert it. */
  private async insert(
    transaction: Transaction,
    ownerId: UserId,
    id: SourceId,
    change: SourceChange,
    slug: string,
  ): Promise<SourceRow | undefined> {
    const { rows } = await transaction.query<BareRow>({
      name: 'source-insert',
      text: INSERT,
      values: valuesOf(ownerId, id, { ...change, slug }),
    });
    return rows[0] && this.withComponent(transaction, rows[0]);
  }

  /** The same with the fact of it, in one statement. Most creates need no other one. */
  private async insertWithFact(ownerId: UserId, id: SourceId, change: SourceChange): Promise<SourceRow | undefined> {
    const component = await this.component(this.database, change.component_id);
    const { topic, headers, value } = newSourceRecord(ownerId, id, change, component);
    const { rows } = await this.database.query<BareRow>({
      name: 'source-insert-with-fact',
      text: `WITH made AS (${INSERT}),
             fact AS (
               SELECT $11::text AS topic, id AS key, owner_id AS account_id, $12::text AS headers, 1 AS n,
                 convert_to(left($13, -1) || ',"version":' || version || ',"created_at_ms":' || ${CREATED_AT_MS} || '}', 'UTF8') AS value
               FROM made
             ),
             added AS (${addedToOutbox('fact')} RETURNING ${WAKE_RELAY})
             SELECT * FROM made`,
      values: [...valuesOf(ownerId, id, change), topic, JSON.stringify(headers ?? {}), value],
    });
    return rows[0] && { ...rows[0], component };
  }

  /**
   * Throws a conflict if the source was deleted: after a crash, the command that created it may be handled again, but not the command that deleted it, which
   * expires sooner. Throws Unavailable if its account is suspended: a source can take a minute to create, and its hooks would run.
   */
  private async requireCreatable(transaction: Transaction, ownerId: UserId, id: SourceId): Promise<void> {
    if (await transaction.rows(DeletedSourceRow).existsBy({ id })) throw new SluiceError('conflict', `the source ${id} has been deleted`);
    if (await transaction.rows(SuspendedAccountRow).existsBy({ owner_id: ownerId })) throw accountSuspended();
  }

  /** Inserts the source under a slug with a number, unless it exists. */
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
      if (await transaction.rows(SourceRow).existsBy({ id })) return undefined;
      await this.requireCreatable(transaction, ownerId, id);
      const { external_id } = change;
      if (external_id !== null && (await transaction.rows(SourceRow).existsBy({ owner_id: ownerId, external_id }))) throw externalIdTaken();
      // otherwise the slug is taken: a create whose slug is free does not wait here, and may have taken this one
    }
  }

  /** Sets the fields of the source, which is locked. */
  private async change(transaction: Transaction, ownerId: UserId, id: SourceId, change: SourceChange): Promise<SourceRow> {
    const { rows } = await this.ofComponent(change, () =>
      transaction.query<BareRow>({
        name: 'source-update',
        text: `UPDATE source SET component_id = $3, name = $4, name_slug = $5, configured_props = $6, schedules = $7, endpoint_key = $8, active = $9,
               external_id = $10, version = ${nextVersion('source')}, updated_at = now()
             WHERE id = $1 AND owner_id = $2 RETURNING *`,
        values: valuesOf(ownerId, id, change),
      }),
    );
    return this.withComponent(transaction, rows[0]!);
  }

  /** Most changes leave the slug as it is. */
  private async slugFor(transaction: Transaction, before: SourceRow, { slug }: SourceChange, isRepeated: boolean): Promise<string> {
    if (slug === before.name_slug) return slug;
    return isRepeated
      ? this.reserveSlug(transaction, before.owner_id, before.id, slug)
      : this.freeSlug(transaction, before.owner_id, before.id, slug);
  }

  /** As `freeSlug`. Changes that need a number, or have met another one that took the slug, wait for each other here. */
  private async reserveSlug(transaction: Transaction, ownerId: UserId, id: SourceId, slug: string): Promise<string> {
    await transaction.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`slug ${ownerId}`]);
    return this.freeSlug(transaction, ownerId, id, slug);
  }

  /** The slug, with a suffix `-1`, `-2`, … that is free in the account. */
  private async freeSlug(transaction: Transaction, ownerId: UserId, id: SourceId, slug: string): Promise<string> {
    return freeSlug(slug, async (slugs) => {
      const { rows } = await transaction.query<{ name_slug: string }>({
        name: 'source-slugs-taken',
        text: 'SELECT name_slug FROM source WHERE owner_id = $1 AND name_slug = ANY($2) AND id <> $3',
        values: [ownerId, slugs, id],
      });
      return new Set(rows.map(({ name_slug }) => name_slug));
    });
  }

  /** Locks and returns the source. */
  private lock(transaction: Transaction, ownerId: UserId, id: SourceId): Promise<SourceRow | undefined> {
    return this.findIn(transaction, ownerId, id, { locks: true });
  }

  /** Stores the inline connections of a source, and copies the credentials that it uses into its row. Returns them. */
  private async connect(
    transaction: Transaction,
    ownerId: UserId,
    id: SourceId,
    { uses = [], inline = [] }: SourceChange,
  ): Promise<UsedCredentials | null> {
    await this.connections.replaceInline(transaction, ownerId, id, { uses, inline });
    const used = await this.connections.findAllToCopy(transaction, ownerId, uses);
    // between the check and the lock
    if (used.length < new Set(uses).size) throw new Invalid('configured_props names a connection that does not exist');
    const credentials = used.length === 0 ? null : Object.fromEntries(used.map((each) => [each.id, each.credentials]));
    await transaction.query('UPDATE source SET credentials = $3 WHERE owner_id = $1 AND id = $2', [ownerId, id, credentials]);
    return credentials;
  }

  /** Prepared SQL: every request for a source reads it, and TypeORM's joins need eight times the CPU. */
  private async findIn(session: Session, ownerId: UserId, id: SourceId, { locks = false } = {}): Promise<SourceRow | undefined> {
    const { rows } = await session.query<BareRow>({
      name: locks ? 'source-lock' : 'source-find',
      text: `SELECT * FROM source WHERE owner_id = $1 AND id = $2 ${locks ? 'FOR UPDATE' : ''}`,
      values: [ownerId, id],
    });
    return rows[0] && this.withComponent(session, rows[0]);
  }

  private async withComponent(session: Session, row: BareRow): Promise<SourceRow> {
    return { ...row, component: await this.component(session, row.component_id) };
  }

  /** Writes a source of a component that may have been deleted, with its account or by a restore of the database. */
  private async ofComponent<T>({ component_id }: SourceChange, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      const { code, constraint } = error as { code?: string; constraint?: string };
      if (code !== FOREIGN_KEY_VIOLATION || constraint !== 'source_component_id_fkey') throw error;
      this.components.forget(component_id);
      throw new NotFound('component', component_id);
    }
  }

  /** The part of a component that its sources need. */
  private async component(session: Session, id: ComponentId): Promise<SourceRow['component']> {
    const found = await this.components.describe(session, id);
    if (!found) throw new NotFound('component', id);
    const { code_hash, description } = found;
    return { code_hash, inspected: { description } } as SourceRow['component'];
  }

  /** Publishes the states of rows that a statement has changed, and returns them. */
  private async publishAll(transaction: Transaction, { rows }: { rows: BareRow[] }): Promise<EmitterState[]> {
    const states: EmitterState[] = [];
    // one after the other: a description may be large
    for (const row of rows) states.push(sourceState(await this.withComponent(transaction, row)));
    for (const state of states) await this.publish(transaction, state);
    return states;
  }

  /** Publishes the end of a source, and keeps its last state until Kafka has no events of it any more. Removes older states, two for each that it adds. */
  private async publishDeleted(transaction: Transaction, state: EmitterState): Promise<void> {
    const { deployment: _, ...bare } = state;
    await transaction.query({
      name: 'source-keep-deleted',
      text: `WITH gone AS (
               DELETE FROM deleted_source WHERE id IN (
                 SELECT id FROM deleted_source WHERE deleted_at < now() - make_interval(days => $3) AND id <> $1
                 ORDER BY deleted_at LIMIT 2 FOR UPDATE SKIP LOCKED
               )
             )
             INSERT INTO deleted_source (id, state) VALUES ($1, $2)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, deleted_at = excluded.deleted_at`,
      values: [state.emitter_id, JSON.stringify({ ...bare, name: '' }), RECORDS_GONE_AFTER_DAYS],
    });
    await this.publish(transaction, state);
  }

  private publish(transaction: Transaction, state: EmitterState): Promise<void> {
    return addToOutbox(transaction, [{ ...recordOf(emitterChanged, state, state.emitter_id), account: state.owner_id }]);
  }
}

/**
 * The row is missing if its id, slug or external id is taken, and in two cases that `requireCreatable` explains: if the source was deleted, or its account is
 * suspended. While the source is being deleted, the statement still sees it. Without that condition, it would wait for the deletion, and then insert the row.
 */
const INSERT = `
  INSERT INTO source (id, owner_id, component_id, name, name_slug, configured_props, schedules, endpoint_key, active, external_id)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
  WHERE NOT EXISTS (SELECT FROM source WHERE id = $1) AND NOT EXISTS (SELECT FROM deleted_source WHERE id = $1)
    AND NOT EXISTS (SELECT FROM suspended_account WHERE owner_id = $2)
  ON CONFLICT DO NOTHING RETURNING *`;

/** SQL: what `Date.getTime` returns for a row that was read. */
export const CREATED_AT_MS = 'floor(extract(epoch FROM created_at) * 1000)';

/** The record of a new source's fact, without what the database determines: its version and the time of its creation. */
function newSourceRecord(ownerId: UserId, id: SourceId, change: SourceChange, component: SourceRow['component']): OutgoingRecord {
  const row = { ...change, id, owner_id: ownerId, name_slug: change.slug, credentials: null, suspended: false, component };
  const undetermined = { version: 0, created_at: new Date(0), updated_at: new Date(0) };
  const { version: _, created_at_ms: __, ...state } = sourceState({ ...row, ...undetermined });
  return recordOf(emitterChanged, state, id);
}

/** In the order of the parameters of `INSERT` and `change`. */
const valuesOf = (ownerId: UserId, id: SourceId, change: SourceChange): unknown[] => [
  id,
  ownerId,
  change.component_id,
  change.name,
  change.slug,
  JSON.stringify(change.configured_props),
  JSON.stringify(change.schedules),
  change.endpoint_key,
  change.active,
  change.external_id,
];

/** A change of connections was decided without holding them. */
class NeedsConnections extends Error {}

/** Not a final response, which would be returned again under an `Idempotency-Key` when the account is resumed. */
const accountSuspended = (): Unavailable => new Unavailable('this account is suspended');

const externalIdTaken = (): SluiceError => new SluiceError('conflict', 'another of your sources has this external_id');

export const withComponent = (query: SelectQueryBuilder<SourceRow>): SelectQueryBuilder<SourceRow> =>
  query.innerJoinAndSelect('source.component', 'component');
