import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { EVENTS_TOPIC, type RunRequest, type SourceId, type UserId, type WaitingEmit as Waiting, type WaitingEmitKey } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, FairBatches, packedBytes, type Transaction, unpackedBytes } from '#database';
import type { EventToProduce } from '#events';
import { shares } from '#messaging';
import { addedToOutbox, WAKE_RELAY } from '#outbox';
import { DueRows, msToFirst } from '#due-work';
import { deletionOfDeletedSources } from '../deleted-sources.js';

/** An emit that waits for its `delivery_ts`: the whole record of the event, ready to be produced. */
@Entity('waiting_emit')
@Index('waiting_emit_due', ['due_at'])
@Index('waiting_emit_source', ['source_id'])
@Index('waiting_emit_turn', ['account_id', 'due_at'])
export class WaitingEmit {
  @PrimaryColumn(BYTEWISE_TEXT)
  emit_id!: string;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  @Column('timestamptz')
  due_at!: Date;

  @Column('jsonb')
  headers!: Record<string, string>;

  @Column('bytea')
  value!: Buffer;

  /** Of the headers, as text, and the value. null: written by an older version. */
  @Column('integer', { nullable: true })
  bytes!: number | null;

  /** null: written by an older version. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  account_id!: UserId | null;

  @Column(CREATED_AT)
  waits_since!: Date;
}

const KEY = 'emit_id, source_id AS emitter_id, floor(extract(epoch FROM waits_since) * 1000)::float8 AS since_ms';

/** The place of an emit among those of its account. `dueAt`: as PostgreSQL writes it. */
export interface WaitingPlace {
  dueAt: string;
  emitId: string;
}

/** An emit that waits for its `delivery_ts`. */
export interface NewWaitingEmit {
  emit_id: string;
  /** Milliseconds. */
  due_at_ms: number;
  /** Its place among the emits of the run; absent: that in the array. */
  nth?: number;
  record: EventToProduce;
}

/** SQL that deletes the emits of a deleted source ($1). */
export const DELETE_WAITING_EMITS = 'DELETE FROM waiting_emit WHERE source_id = $1';

/** The only writer of the table `waiting_emit`: emits that wait for their `delivery_ts`. Prepared SQL: several times a second, and for the locks. */
@Injectable()
export class WaitingEmitsRepository extends DueRows {
  private readonly batches = new FairBatches<Waiting>({
    name: 'waiting',
    table: 'waiting_emit',
    columns: KEY,
    key: 'emit_id',
    order: 'due_at',
    bytes: 'coalesce(bytes, octet_length(value) + pg_column_size(headers))',
    due: 'due_at <= now()',
  });

  constructor(private readonly database: Database) {
    super();
  }

  /** Adds the emits of a run. Those that are due at the same time keep their order, because each is due a microsecond after the one before. */
  async add(
    transaction: Transaction,
    { source_id, owner_id }: Pick<RunRequest, 'source_id' | 'owner_id'>,
    emits: NewWaitingEmit[],
  ): Promise<void> {
    if (emits.length === 0) return;
    // a few at a time: to prepare megabytes for one statement would block the main thread
    for (const share of shares(emits.map(({ record, nth, ...emit }, index) => ({ ...emit, ...record, index: nth ?? index })))) {
      await transaction.query({
        name: 'waiting-put',
        text: `INSERT INTO waiting_emit (emit_id, source_id, account_id, due_at, headers, value, bytes)
               SELECT emit_id, $1, $2, to_timestamp(due / 1000.0) + nth * interval '1 microsecond', headers::jsonb, ${unpackedBytes('$9')},
                 octet_length(headers) + length
               FROM unnest($3::text[], $4::float8[], $5::int[], $6::text[], $7::int[], $8::int[]) AS w (emit_id, due, nth, headers, start, length)`,
        values: [
          source_id,
          owner_id,
          share.map(({ emit_id }) => emit_id),
          share.map(({ due_at_ms }) => due_at_ms),
          share.map(({ index }) => index),
          share.map(({ headers }) => JSON.stringify(headers)),
          ...packedBytes(share.map(({ value }) => value)),
        ],
      });
    }
    this.scheduled(transaction, Math.min(...emits.map(({ due_at_ms }) => due_at_ms)) - Date.now());
  }

  msToNext(): Promise<number | null> {
    return msToFirst(
      this.database,
      'waiting-first',
      'SELECT extract(epoch FROM due_at - now())::float8 * 1000 AS ms FROM waiting_emit ORDER BY due_at LIMIT 1',
    );
  }

  /** Deletes emits of sources that were deleted while the run was in progress. */
  async deleteOfDeleted(): Promise<void> {
    await this.database.query(deletionOfDeletedSources('waiting_emit'));
  }

  /** The next due emits: the oldest ones, or, while many are due, those whose turn it is. Another replica may find the same ones. */
  async due(): Promise<Waiting[]> {
    const { rows } = await this.batches.next(this.database);
    return rows.map(({ emitter_id, emit_id, since_ms }) => ({ emitter_id, emit_id, since_ms }));
  }

  /** At most `limit` emits of an account, in the order in which they become due, from behind `after`. `last`: where to continue; null at the end. */
  async ofAccount(accountId: UserId, after: WaitingPlace | null, limit: number): Promise<{ emits: Waiting[]; last: WaitingPlace | null }> {
    const { rows } = await this.database.query<Waiting & { due: string }>({
      name: 'waiting-of-account',
      text: `SELECT ${KEY}, due_at::text AS due FROM waiting_emit
             WHERE account_id = $1 AND (due_at, emit_id) > ($2::timestamptz, $3) ORDER BY due_at, emit_id LIMIT $4`,
      values: [accountId, after?.dueAt ?? '-infinity', after?.emitId ?? '', limit],
    });
    const last = rows.at(-1);
    return {
      emits: rows.map(({ due: _, ...emit }) => emit),
      last: last && rows.length === limit ? { dueAt: last.due, emitId: last.emit_id } : null,
    };
  }

  /**
   * Moves these emits into the outbox, oldest first, and drops the withdrawn ones. Only the transaction that deletes a row emits it. Replicas take turns:
   * if each moved some of the same emits, later ones could be before earlier ones.
   */
  async release(emits: WaitingEmitKey[], withdrawn: WaitingEmitKey[]): Promise<{ emitted: number; dropped: number }> {
    const { rows } = await this.database.query<{ emitted: number; dropped: number }>({
      name: 'waiting-release',
      // skips rows that the deletion of a source has locked: both would wait for each other's rows
      text: `WITH turn AS MATERIALIZED (
               SELECT count(pg_advisory_xact_lock(hashtext('sluice.waiting-emits'))) AS taken
             ), released AS (
               DELETE FROM waiting_emit WHERE emit_id IN (
                 SELECT emit_id FROM waiting_emit WHERE (SELECT taken FROM turn) = 1 AND emit_id = ANY ($1) FOR UPDATE SKIP LOCKED
               )
               RETURNING emit_id, source_id, account_id, headers, value, due_at
             ), wanted AS (
               SELECT $3::text AS topic, source_id AS key, account_id, headers, value, row_number() OVER (ORDER BY due_at, emit_id) AS n
               FROM released WHERE emit_id <> ALL ($2)
             ), added AS (
               ${addedToOutbox('wanted')}
             )
             SELECT emitted::int, (total - emitted)::int AS dropped, ${WAKE_RELAY}
             FROM (SELECT count(*) AS total FROM released) AS r, (SELECT count(*) AS emitted FROM wanted) AS w`,
      values: [emits.map(({ emit_id }) => emit_id), withdrawn.map(({ emit_id }) => emit_id), EVENTS_TOPIC],
    });
    return rows[0]!;
  }
}
