import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { EVENTS_TOPIC, type SourceId, type WaitingEmitKey } from '#contracts';
import { BYTEWISE_TEXT, Database, type Transaction } from '#database';
import type { EventToProduce } from '#events';
import { addToOutbox } from '#outbox';
import { DueRows } from '#due-work';

/** An emit that waits for its `delivery_ts`: the whole record of the event, ready to be produced. */
@Entity('waiting_emit')
@Index('waiting_emit_due', ['due_at'])
@Index('waiting_emit_source', ['source_id'])
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
}

/** An emit that waits for its `delivery_ts`. */
export interface NewWaitingEmit {
  emit_id: string;
  /** Milliseconds. */
  due_at_ms: number;
  record: EventToProduce;
}

interface ReleasedRow {
  emit_id: string;
  source_id: SourceId;
  headers: Record<string, string>;
  value: Buffer;
}

/** Emits that wait for their `delivery_ts`. Prepared SQL: several times a second, and for the locks. */
@Injectable()
export class WaitingEmitsRepository extends DueRows {
  constructor(private readonly database: Database) {
    super();
  }

  async add(transaction: Transaction, sourceId: string, emits: NewWaitingEmit[]): Promise<void> {
    if (emits.length === 0) return;
    await transaction.query({
      name: 'waiting-put',
      text: `INSERT INTO waiting_emit (emit_id, source_id, due_at, headers, value)
             SELECT emit_id, $1, to_timestamp(due / 1000.0), headers, value FROM unnest($2::text[], $3::float8[], $4::jsonb[], $5::bytea[]) AS w (emit_id, due, headers, value)`,
      values: [
        sourceId,
        emits.map(({ emit_id }) => emit_id),
        emits.map(({ due_at_ms }) => due_at_ms),
        emits.map(({ record }) => JSON.stringify(record.headers)),
        emits.map(({ record }) => record.value),
      ],
    });
    this.scheduled(transaction, Math.min(...emits.map(({ due_at_ms }) => due_at_ms)) - Date.now());
  }

  async msToNext(): Promise<number | null> {
    const { rows } = await this.database.query<{ ms: number }>({
      name: 'waiting-first',
      text: 'SELECT extract(epoch FROM due_at - now())::float8 * 1000 AS ms FROM waiting_emit ORDER BY due_at LIMIT 1',
      values: [],
    });
    return rows[0]?.ms ?? null;
  }

  async deleteOfSource(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.rows(WaitingEmit).delete({ source_id: sourceId });
  }

  /** Due emits, oldest first. Another replica may find the same ones. */
  async due(limit: number): Promise<WaitingEmitKey[]> {
    const { rows } = await this.database.query<WaitingEmitKey>({
      name: 'waiting-due',
      text: 'SELECT source_id AS emitter_id, emit_id FROM waiting_emit WHERE due_at <= now() ORDER BY due_at LIMIT $1',
      values: [limit],
    });
    return rows;
  }

  /** Moves these emits into the outbox, oldest first, and drops the withdrawn ones. Only the transaction that deletes a row emits it. */
  async release(emits: WaitingEmitKey[], withdrawn: WaitingEmitKey[]): Promise<{ emitted: number; dropped: number }> {
    const unwanted = new Set(withdrawn.map(({ emit_id }) => emit_id));
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<ReleasedRow>({
        name: 'waiting-release',
        // skips rows that another replica has locked: two replicas waiting for each other's rows would deadlock
        text: `WITH released AS (
                 DELETE FROM waiting_emit WHERE emit_id IN (SELECT emit_id FROM waiting_emit WHERE emit_id = ANY ($1) FOR UPDATE SKIP LOCKED)
                 RETURNING emit_id, source_id, headers, value, due_at
               )
               SELECT emit_id, source_id, headers, value FROM released ORDER BY due_at, emit_id`,
        values: [emits.map(({ emit_id }) => emit_id)],
      });
      const wanted = rows.filter(({ emit_id }) => !unwanted.has(emit_id));
      await addToOutbox(
        transaction,
        wanted.map(({ source_id, headers, value }) => ({ topic: EVENTS_TOPIC, key: source_id, headers, value })),
      );
      return { emitted: wanted.length, dropped: rows.length - wanted.length };
    });
  }
}
