import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { executeRun, type RunRequest, type SourceId, type UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, FairBatches, type Session, type Transaction } from '#database';
import { addedToOutbox, WAKE_RELAY } from '#outbox';
import { DueRows, msToFirst } from '#due-work';
import { deletionOfDeletedSources } from '../deleted-sources.js';

/** A run for an event that has failed and will be repeated; deleted when an attempt succeeds, or the last one has failed. */
@Entity('retried_run')
@Index('retried_run_due', ['due_at'])
@Index('retried_run_source', ['source_id'])
@Index('retried_run_turn', ['account_id', 'due_at'])
@Index('retried_run_requested', ['first_run_id'], { where: 'requested_at IS NOT NULL' })
export class RetriedRun {
  @PrimaryColumn(BYTEWISE_TEXT)
  first_run_id!: string;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  /** When the next attempt is requested; while it is in progress: when it is requested again. */
  @Column('timestamptz')
  due_at!: Date;

  /** null: the next attempt has not been requested. */
  @Column('timestamptz', { nullable: true })
  requested_at!: Date | null;

  /** The next attempt. */
  @Column('jsonb')
  request!: RunRequest;

  /** null: written by an older version. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  account_id!: UserId | null;

  /** Of the request, as text. */
  @Column('integer', { default: 0 })
  bytes!: number;
}

/** A request for an attempt is lost only if its topic is: then it is requested again after this time. */
const GIVE_UP = '1 hour';

/** The end of an attempt. `next`: the attempt that follows it; null: none does. */
export interface EndedAttempt {
  firstRunId: string;
  sourceId: SourceId;
  next: RunRequest | null;
}

/** SQL: when a lost request may be repeated. One in the future is from a time when the clock of the database was ahead. */
const REQUESTED_AGAIN_AT = 'greatest(now(), least(now(), requested_at) + make_interval(secs => $1))';

/**
 * SQL: requests attempts again that have been requested, have not ended and wait nowhere. Reads no requests of attempts that wait, because they may be
 * gigabytes. The previous version does not reset `requested_at`, so the time of the attempt decides, too.
 * A locked one ends at this moment: waiting for it could be a deadlock.
 * @param $1 seconds which have to pass after a request
 */
export const REPEAT_LOST = `
  UPDATE retried_run SET due_at = ${REQUESTED_AGAIN_AT} WHERE first_run_id = ANY (ARRAY(
    SELECT first_run_id FROM retried_run
    WHERE requested_at IS NOT NULL AND due_at > ${REQUESTED_AGAIN_AT} AND to_timestamp((request->>'due_at_ms')::float8 / 1000) <= now()
      AND NOT EXISTS (SELECT FROM queued_run WHERE queued_run.run_id = retried_run.request->>'run_id')
    FOR UPDATE SKIP LOCKED))`;

/**
 * The only writer of the table `retried_run`: runs that failed and will be repeated. Prepared SQL, for the database's clock, and because due attempts
 * are claimed by SKIP LOCKED.
 */
@Injectable()
export class RetriedRunsRepository extends DueRows {
  private readonly batches = new FairBatches<Pick<RetriedRun, 'first_run_id'>>({
    name: 'retries',
    table: 'retried_run',
    columns: 'first_run_id',
    key: 'first_run_id',
    order: 'due_at',
    bytes: 'bytes',
    due: 'due_at <= now()',
  });

  constructor(private readonly database: Database) {
    super();
  }

  /** Stores the next attempts of runs that have failed, and forgets runs that have succeeded or failed for the last time. */
  async settle(session: Session, ended: EndedAttempt[]): Promise<void> {
    const [over, failed] = [ended.filter(({ next }) => next === null), ended.filter(({ next }) => next !== null)];
    if (over.length > 0) {
      await session.query({
        name: 'retries-end',
        text: 'DELETE FROM retried_run WHERE first_run_id = ANY($1)',
        values: [over.map(({ firstRunId }) => firstRunId).sort()],
      });
    }
    if (failed.length === 0) return;
    const requests = failed.map(({ next }) => JSON.stringify(next));
    await session.query({
      name: 'retries-put',
      // a source that was deleted or deactivated while it ran has no further attempts
      text: `INSERT INTO retried_run (first_run_id, source_id, account_id, due_at, request, bytes)
             SELECT r.first_run_id, r.source_id, r.request->>'owner_id', to_timestamp((r.request->>'due_at_ms')::float8 / 1000), r.request, r.bytes
             FROM unnest($1::text[], $2::text[], $3::jsonb[], $4::int[]) AS r (first_run_id, source_id, request, bytes)
             WHERE EXISTS (SELECT FROM deployment d WHERE d.source_id = r.source_id AND d.active) ORDER BY first_run_id
             ON CONFLICT (first_run_id) DO UPDATE SET due_at = excluded.due_at, requested_at = NULL, request = excluded.request, bytes = excluded.bytes`,
      values: [
        failed.map(({ firstRunId }) => firstRunId),
        failed.map(({ sourceId }) => sourceId),
        requests,
        requests.map((request) => Buffer.byteLength(request)),
      ],
    });
    this.scheduled(session, Math.min(...failed.map(({ next }) => next!.due_at_ms)) - Date.now());
  }

  /** These runs are not executed. Those that are attempts have no further ones. */
  leaveOut(runs: Pick<RunRequest, 'source_id' | 'retry'>[]): Promise<void> {
    return this.settle(
      this.database,
      runs.flatMap(({ source_id, retry }) => (retry ? [{ firstRunId: retry.first_run_id, sourceId: source_id, next: null }] : [])),
    );
  }

  msToNext(): Promise<number | null> {
    return msToFirst(
      this.database,
      'retries-first',
      'SELECT extract(epoch FROM due_at - now())::float8 * 1000 AS ms FROM retried_run ORDER BY due_at LIMIT 1',
    );
  }

  /**
   * Requests attempts that are due: the oldest ones, or, while many are due, those whose turn it is. Returns their number. Replicas share the work, but may
   * find the same ones.
   */
  async release(): Promise<number> {
    const { rows: due } = await this.batches.next(this.database);
    if (due.length === 0) return 0;
    const { rows } = await this.database.query<{ released: number }>({
      name: 'retries-release',
      text: `WITH released AS (
               UPDATE retried_run SET due_at = now() + interval '${GIVE_UP}', requested_at = now() WHERE first_run_id IN (
                 SELECT first_run_id FROM retried_run WHERE first_run_id = ANY ($1) AND due_at <= now() FOR UPDATE SKIP LOCKED
               ) RETURNING request, account_id
             ), record AS (
               SELECT $2::text AS topic, request->>'owner_id' AS key, account_id, '{}'::jsonb AS headers, convert_to(request::text, 'UTF8') AS value,
                 row_number() OVER (ORDER BY (request->>'due_at_ms')::float8) AS n
               FROM released
             ), added AS (
               ${addedToOutbox('record')}
             )
             SELECT count(*)::int AS released, ${WAKE_RELAY} FROM released`,
      values: [due.map(({ first_run_id }) => first_run_id), executeRun.topic],
    });
    return rows[0]!.released;
  }

  /** Requests attempts again that have been requested, have not ended and wait nowhere, because Kafka has lost requests. Returns their number. */
  async repeatLost(seconds = 0): Promise<number> {
    const { rowCount } = await this.database.query(REPEAT_LOST, [seconds]);
    return rowCount ?? 0;
  }

  /** Those of these runs that will be repeated. */
  async pending(firstRunIds: string[]): Promise<Set<string>> {
    const { rows } = await this.database.query<{ id: string }>({
      name: 'retries-pending',
      text: 'SELECT first_run_id AS id FROM retried_run WHERE first_run_id = ANY($1)',
      values: [firstRunIds],
    });
    return new Set(rows.map(({ id }) => id));
  }

  /** Deletes those whose next attempt has not been requested: no run that is in progress will change them. */
  async deleteUnrequested(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.query({
      name: 'retries-delete-unrequested',
      text: `DELETE FROM retried_run WHERE first_run_id IN (
               SELECT first_run_id FROM retried_run WHERE source_id = $1 AND requested_at IS NULL FOR UPDATE SKIP LOCKED)`,
      values: [sourceId],
    });
  }

  /** Leaves locked ones, which end or are requested at this moment: waiting for them could be a deadlock. Their next attempts are skipped. */
  async deleteOfSource(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.query({
      name: 'retries-delete-source',
      text: 'DELETE FROM retried_run WHERE first_run_id IN (SELECT first_run_id FROM retried_run WHERE source_id = $1 FOR UPDATE SKIP LOCKED)',
      values: [sourceId],
    });
  }

  /** Deletes attempts of sources that were deleted while the run was in progress. */
  async deleteOfDeleted(): Promise<void> {
    await this.database.query(deletionOfDeletedSources('retried_run'));
  }
}
