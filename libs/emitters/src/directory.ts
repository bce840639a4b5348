import { Injectable, Optional } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Column, Entity, LessThan, PrimaryColumn } from 'typeorm';
import { type EmitterState, findEmitters, type UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, Migration, type SchemaPart, type Transaction } from '#database';
import { Messages } from '#messaging';

/** An app's copy of an emitter. */
@Entity('emitter')
export class Emitter {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('text')
  kind!: 'source' | 'workflow';

  @Column('boolean')
  active!: boolean;

  @Column('boolean')
  deleted!: boolean;

  /** Of the newest state. */
  @Column('bigint')
  version!: number;

  @Column('bigint')
  created_at_ms!: number;
}

class CreateEmitters1795305600001 extends Migration {
  readonly sql = `
    CREATE TABLE emitter (
      id            text COLLATE "C" PRIMARY KEY,
      owner_id      text COLLATE "C" NOT NULL,
      kind          text NOT NULL,
      active        boolean NOT NULL,
      deleted       boolean NOT NULL,
      version       bigint NOT NULL,
      created_at_ms bigint NOT NULL
    )`;
}

/** The directory's table, for the schema of an app that has one. */
export const emittersSchema: SchemaPart = { entities: [Emitter], migrations: [CreateEmitters1795305600001] };

/** An app's additional work in the transaction that applies a change of an emitter. */
export abstract class EmitterChangeHandler {
  /** `first`: the app did not know the emitter. */
  abstract emitterChanged(transaction: Transaction, state: EmitterState, first: boolean): Promise<void>;
}

const UNKNOWN_FOR_MS = 1000;
/** The caller is reading a topic and sends no heartbeat meanwhile, so this must be well below the session timeout. */
const ASK_TIMEOUT_MS = 4000;

/**
 * The app's table of emitters: owner, active or not. The facts of the catalog keep it current. An emitter
 * that is missing here is looked up in the catalog before it counts as unknown, because a fact can arrive later than an event.
 */
@Injectable()
export class EmitterDirectory {
  /** Ids that the catalog recently did not know: a producer that emits for nonexistent emitters must not flood it with queries. */
  private readonly unknown = new LRUCache<string, true>({ max: 10_000, ttl: UNKNOWN_FOR_MS });

  constructor(
    private readonly database: Database,
    private readonly messages: Messages,
    @Optional() private readonly handler?: EmitterChangeHandler,
  ) {}

  /** The given emitters that exist or have existed, by id. Looks up missing ones in the catalog with one query. */
  async find(ids: string[]): Promise<Map<string, Emitter>> {
    const wanted = [...new Set(ids)];
    const found = await this.known(wanted);
    const missing = wanted.filter((id) => !found.has(id) && !this.unknown.has(id));
    if (missing.length === 0) return found;
    const states = await this.messages.request(findEmitters, { ids: missing }, { key: missing[0] ?? '', timeoutMs: ASK_TIMEOUT_MS });
    for (const state of states) await this.learn(state);
    const existing = new Set(states.map((state) => state.emitter_id as string));
    for (const id of missing) if (!existing.has(id)) this.unknown.set(id, true);
    return new Map([...found, ...(await this.known(missing))]);
  }

  /** The owner's emitter; undefined if it does not exist, is deleted or belongs to another account. */
  async findOwned(ownerId: UserId, id: string): Promise<Emitter | undefined> {
    const emitter = (await this.find([id])).get(id);
    return emitter && !emitter.deleted && emitter.owner_id === ownerId ? emitter : undefined;
  }

  /** Stores a state, and returns whether it was newer than the stored one. Facts may arrive twice, and later than the reply to a query. */
  async learn(state: EmitterState): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ first: boolean }>({
        name: 'emitter-learn',
        // one statement stores a newer state and returns whether the emitter was unknown: xmax = 0 distinguishes an inserted row from an updated one
        text: `INSERT INTO emitter (id, owner_id, kind, active, deleted, version, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (id) DO UPDATE SET active = excluded.active, deleted = excluded.deleted, version = excluded.version
               WHERE emitter.version < excluded.version
               RETURNING xmax = 0 AS first`,
        values: [state.emitter_id, state.owner_id, state.kind, state.active, state.deleted, state.version, state.created_at_ms],
      });
      const learnt = rows[0];
      if (learnt) await this.handler?.emitterChanged(transaction, state, learnt.first);
      return learnt !== undefined;
    });
  }

  /** Locks an emitter against its deletion until the transaction ends. False if the owner has no such emitter. */
  async hold(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM emitter WHERE owner_id = $1 AND id = $2 AND NOT deleted FOR SHARE', [
      ownerId,
      id,
    ]);
    return rowCount === 1;
  }

  /** Those of the emitters that the table has, by id. Prepared SQL: each batch of events begins with it. */
  async known(ids: string[]): Promise<Map<string, Emitter>> {
    const { rows } = await this.database.query<Emitter>({
      name: 'emitter-look',
      text: 'SELECT id, owner_id, kind, active, deleted, version, created_at_ms FROM emitter WHERE id = ANY($1)',
      values: [ids],
    });
    return new Map(rows.map((row) => [row.id, row]));
  }
}

/** Returns whether the emitter was created again after it was deleted: then its time of creation is updated. */
export async function updateCreation(transaction: Transaction, { owner_id, emitter_id, created_at_ms }: EmitterState): Promise<boolean> {
  const { affected } = await transaction
    .rows(Emitter)
    .update({ owner_id, id: emitter_id, created_at_ms: LessThan(created_at_ms) }, { created_at_ms });
  return affected === 1;
}
