import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Not, Repository } from 'typeorm';
import type { ConnectionId, SourceId, UserId } from '#contracts';
import { Database, type KeysetPage, type PagePart, readKeysetPage, type Transaction } from '#database';
import { ConnectionRow } from './connection.entity.js';
import type { InlineConnection, UsedCredentials } from './source-connections.js';

/** Less than a caller waits. */
const LOCK_TIMEOUT_MS = 5000;

/** The only writer of the table `connection`. Each source has copies of the credentials that it uses, which the same transaction changes. */
@Injectable()
export class ConnectionsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(ConnectionRow) private readonly connections: Repository<ConnectionRow>,
  ) {}

  /** Creates the connection unless it exists, and returns it. Undefined if the id belongs to another account. */
  async create(row: Pick<ConnectionRow, 'id' | 'owner_id' | 'app' | 'name' | 'credentials'>): Promise<ConnectionRow | undefined> {
    await this.connections.createQueryBuilder().insert().values(row).orIgnore().execute();
    return this.find(row.owner_id, row.id);
  }

  async find(ownerId: UserId, id: ConnectionId): Promise<ConnectionRow | undefined> {
    return (await this.connections.findOneBy({ owner_id: ownerId, id })) ?? undefined;
  }

  /** Those of the ids that are connections of the owner. */
  async findAll(ownerId: UserId, ids: ConnectionId[], session: Pick<Database, 'rows'> = this.database): Promise<ConnectionRow[]> {
    return ids.length === 0 ? [] : session.rows(ConnectionRow).findBy({ owner_id: ownerId, id: In(ids) });
  }

  /**
   * The same, for a source that gets copies of their credentials. Until the transaction ends, a rotation of the keys waits before it changes these rows;
   * afterwards, it finds the source, and changes the copies.
   */
  async findAllToCopy(transaction: Transaction, ownerId: UserId, ids: ConnectionId[]): Promise<ConnectionRow[]> {
    if (ids.length === 0) return [];
    return transaction.rows(ConnectionRow).find({ where: { owner_id: ownerId, id: In(ids) }, lock: { mode: 'pessimistic_read' } });
  }

  list(ownerId: UserId, page: KeysetPage, part: PagePart = {}): Promise<{ rows: ConnectionRow[]; total: number; cut: boolean }> {
    const owned = this.connections.createQueryBuilder('connection').where('connection.owner_id = :ownerId', { ownerId });
    return readKeysetPage(owned, page, { ...part, size: 'pg_column_size(connection.credentials)' });
  }

  /** Until the transaction ends, no other transaction changes the account's connections, or which of them its sources use. */
  async lock(transaction: Transaction, ownerId: UserId): Promise<void> {
    await this.locked(transaction, 'pg_advisory_xact_lock', ownerId);
  }

  /** Until the transaction ends, no other transaction changes the account's connections. Several may change their sources. */
  async hold(transaction: Transaction, ownerId: UserId): Promise<void> {
    await this.locked(transaction, 'pg_advisory_xact_lock_shared', ownerId);
  }

  /** From here on, the transaction fails with LOCK_NOT_AVAILABLE instead of waiting long: it has a connection that others need. */
  private async locked(transaction: Transaction, lock: string, ownerId: UserId): Promise<void> {
    await transaction.query({
      name: `connections-${lock}`,
      text: `SELECT ${lock}(hashtext('connections'), hashtext($1)) FROM set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)`,
      values: [ownerId],
    });
  }

  /**
   * Changes the connection, and returns it before and after; undefined if the owner has no such connection. `decide` may throw. The caller holds the
   * lock, and copies changed credentials to the sources.
   */
  async update(
    transaction: Transaction,
    ownerId: UserId,
    id: ConnectionId,
    decide: (row: ConnectionRow) => Pick<ConnectionRow, 'name' | 'credentials'>,
  ): Promise<{ before: ConnectionRow; row: ConnectionRow } | undefined> {
    // a rotation of the keys changes the row without the lock of the connections
    const lock = { mode: 'pessimistic_write' } as const;
    const before = await transaction.rows(ConnectionRow).findOne({ where: { owner_id: ownerId, id }, lock });
    if (!before) return undefined;
    const change = decide(before);
    await transaction.rows(ConnectionRow).update({ owner_id: ownerId, id }, change);
    return { before, row: { ...before, ...change } };
  }

  /** Returns false if the owner has no such connection. The caller holds the lock, and has checked that no source uses it. */
  async delete(transaction: Transaction, ownerId: UserId, id: ConnectionId): Promise<boolean> {
    return (await transaction.rows(ConnectionRow).delete({ owner_id: ownerId, id })).affected === 1;
  }

  /** Stores the inline connections of a source, and deletes those that it no longer uses. The caller holds the lock. */
  async replaceInline(
    transaction: Transaction,
    ownerId: UserId,
    sourceId: SourceId,
    { uses, inline }: { uses: ConnectionId[]; inline: InlineConnection[] },
  ): Promise<void> {
    const connections = transaction.rows(ConnectionRow);
    await connections.delete({ owner_id: ownerId, source_id: sourceId, id: Not(In(uses)) });
    if (inline.length === 0) return;
    const stored = await connections
      .createQueryBuilder('connection')
      .insert()
      .values(inline.map((each) => ({ ...each, owner_id: ownerId, source_id: sourceId })))
      .orUpdate(['app', 'name', 'credentials'], ['id'], { overwriteCondition: { where: 'connection.source_id = excluded.source_id' } })
      .returning('id')
      .execute();
    if ((stored.raw as unknown[]).length < inline.length) throw new Error(`a connection is not of the source ${sourceId}`);
  }

  /** The encrypted credentials of the inline connections of these sources, by source and connection. */
  async inlineOf(sourceIds: SourceId[]): Promise<Map<SourceId, UsedCredentials>> {
    if (sourceIds.length === 0) return new Map();
    const { rows } = await this.database.query<{ source_id: SourceId; credentials: UsedCredentials }>({
      name: 'connections-inline',
      text: `SELECT source_id, jsonb_object_agg(id, credentials) AS credentials FROM connection WHERE source_id = ANY($1) GROUP BY source_id`,
      values: [sourceIds],
    });
    return new Map(rows.map(({ source_id, credentials }) => [source_id, credentials]));
  }

  /** Deletes the inline connections of a deleted source. */
  async deleteInline(transaction: Transaction, ownerId: UserId, sourceId: SourceId): Promise<void> {
    await transaction.query({
      name: 'connections-delete-inline',
      text: 'DELETE FROM connection WHERE owner_id = $1 AND source_id = $2',
      values: [ownerId, sourceId],
    });
  }
}
