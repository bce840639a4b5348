import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { type ConnectionId, type EmitterState, emitterChanged, SluiceError, type SourceId, type UserId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage } from '#database';
import { recordOf } from '#messaging';
import { addToOutbox } from '#outbox';
import { nextVersion } from '../database/version.js';
import { SourcesRepository } from '../sources/sources.repository.js';
import { sourceState } from '../sources/source.entity.js';
import { ConnectionRow } from '../sources/connection.entity.js';

/** Connections. Each source has copies of the credentials that it uses, because its facts contain them. Both change in one transaction. */
@Injectable()
export class ConnectionsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(ConnectionRow) private readonly connections: Repository<ConnectionRow>,
    private readonly sources: SourcesRepository,
  ) {}

  /** Creates the connection unless it exists, and returns it. Undefined if the id belongs to another account. */
  async create(row: Pick<ConnectionRow, 'id' | 'owner_id' | 'app' | 'name' | 'credentials'>): Promise<ConnectionRow | undefined> {
    await this.connections.createQueryBuilder().insert().values(row).orIgnore().execute();
    return this.find(row.owner_id, row.id);
  }

  async find(ownerId: UserId, id: ConnectionId): Promise<ConnectionRow | undefined> {
    return (await this.connections.findOneBy({ owner_id: ownerId, id })) ?? undefined;
  }

  findAll(ownerId: UserId, ids: ConnectionId[]): Promise<ConnectionRow[]> {
    return this.connections.findBy({ owner_id: ownerId, id: In(ids) });
  }

  list(ownerId: UserId, page: KeysetPage): Promise<{ rows: ConnectionRow[]; total: number }> {
    return readKeysetPage(this.connections.createQueryBuilder('connection').where('connection.owner_id = :ownerId', { ownerId }), page);
  }

  /**
   * Changes the connection, and copies the new credentials to the sources that use it. Returns it with the states of these sources; undefined if the
   * owner has no such connection. `decide` receives the locked row and may throw.
   */
  async update(
    ownerId: UserId,
    id: ConnectionId,
    decide: (row: ConnectionRow) => Pick<ConnectionRow, 'name' | 'credentials'>,
  ): Promise<{ row: ConnectionRow; states: EmitterState[] } | undefined> {
    return this.database.transaction(async (transaction) => {
      await this.sources.lockConnections(transaction, ownerId);
      const before = await transaction.rows(ConnectionRow).findOneBy({ owner_id: ownerId, id });
      if (!before) return undefined;
      const change = decide(before);
      const row = { ...before, ...change };
      await transaction.rows(ConnectionRow).update({ owner_id: ownerId, id }, change);
      if (change.credentials === before.credentials) return { row, states: [] };
      const { rows } = await transaction.query<{ id: SourceId }>(
        `UPDATE source SET credentials = jsonb_set(credentials, ARRAY[$2], to_jsonb($3::text)), version = ${nextVersion('source')}
         WHERE owner_id = $1 AND credentials ? $2 RETURNING id`,
        [ownerId, id, change.credentials],
      );
      const states: EmitterState[] = [];
      for (const source of rows) states.push(sourceState(await this.sources.reread(transaction, ownerId, source.id)));
      await addToOutbox(
        transaction,
        states.map((state) => ({ ...recordOf(emitterChanged, state, state.emitter_id), account: ownerId })),
      );
      return { row, states };
    });
  }

  /** Returns false if the owner has no such connection. Throws a conflict while a source uses it. */
  async delete(ownerId: UserId, id: ConnectionId): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      await this.sources.lockConnections(transaction, ownerId);
      const { rows } = await transaction.query<{ id: SourceId }>('SELECT id FROM source WHERE owner_id = $1 AND credentials ? $2 LIMIT 1', [
        ownerId,
        id,
      ]);
      if (rows[0]) throw new SluiceError('conflict', `the source ${rows[0].id} uses this connection`);
      return (await transaction.rows(ConnectionRow).delete({ owner_id: ownerId, id })).affected === 1;
    });
  }
}
