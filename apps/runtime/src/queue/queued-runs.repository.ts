import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import type { RunRequest, SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, isLeased, type Session, type Transaction } from '#database';
import { addToOutbox } from '#outbox';
import { isMissed, sourceInactive } from '../run-events/error-reports.js';

/** A run that waits because its account has reached its limit, or because it is the run of a hook; deleted when the run has ended. */
@Entity('queued_run')
@Unique('queued_run_run_id_key', ['run_id'])
@Index('queued_run_turn', ['account_id', 'source_id', 'seq'])
@Index('queued_run_source', ['source_id'])
@Index('queued_run_hook', ['account_id', 'seq'], { where: 'hook' })
@Index('queued_run_held', ['source_id'], { where: 'held_by IS NOT NULL' })
export class QueuedRun {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  seq!: number;

  @Column(BYTEWISE_TEXT)
  run_id!: string;

  @Column(BYTEWISE_TEXT)
  account_id!: UserId;

  @Column(BYTEWISE_TEXT)
  source_id!: SourceId;

  /** Whether it is the run of a hook, which outlives its source. */
  @Column('boolean')
  hook!: boolean;

  @Column('jsonb')
  request!: RunRequest;

  /** Of the request, as text. */
  @Column('integer', { default: 0 })
  bytes!: number;

  /** The replica in which it was in progress when it was queued: only that one executes it, and the runs of its source, until `held_until`. */
  @Column('text', { nullable: true })
  held_by!: string | null;

  @Column('timestamptz', { nullable: true })
  held_until!: Date | null;
}

/** The replica that executes the queued runs of an account. */
@Entity('queue_lease')
export class QueueLease {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @Column('text')
  replica!: string;

  @Column('timestamptz')
  leased_until!: Date;
}

/**
 * SQL that removes runs that have ended, whose ids are the array `ids`; a part of the statement that stores their outcomes. It looks each one up: the
 * planner, which does not know yet how many runs wait, would read the whole table. A locked row is being removed together with those of its source:
 * waiting for it could be a deadlock.
 */
export const removedFromQueue = (ids: string): string =>
  `DELETE FROM queued_run WHERE ctid = ANY (ARRAY(
     SELECT found.ctid FROM unnest(${ids}) AS run (id)
     CROSS JOIN LATERAL (SELECT ctid FROM queued_run WHERE run_id = run.id LIMIT 1 FOR UPDATE SKIP LOCKED) AS found))`;

/** The most runs of a source that a replica takes at a time, besides those of its hooks. */
export const TAKEN_PER_SOURCE = 8;

/** Of the requests that one statement returns, in bytes: the main thread parses all of them at once. The last one may exceed it. */
export const NEXT_BYTES = 2 * 1024 * 1024;

/** The sources whose runs are looked at in one statement. */
const WALKED = 64;

/** A process of the runtime. */
export type Replica = string;

/** Runs that are in progress in a replica while they are queued. */
export interface HeldRuns {
  runs: RunRequest[];
  replica: Replica;
  seconds: number;
}

/** How many runs of an account are taken. */
export interface NextRuns {
  /** The one that takes them. */
  replica: Replica;
  /** Runs of hooks. */
  hooks: number;
  /** Other runs. */
  runs: number;
  /** Of these, those that are not the first one of their source. They count together with the first ones, so these may leave no space for them. */
  further: number;
  /** The source of the run that was taken last; its turn is behind those of the others. '': none was. */
  after: string;
}

/** A run that waits. */
export interface WaitingRun {
  request: RunRequest;
  /** Of the request, as text. */
  bytes: number;
  /** How many runs of its source may be in progress. */
  at_a_time: number;
}

/** An account with waiting runs. */
export interface WaitingAccount {
  id: UserId;
  /** Whether some of them are hooks, also of those in progress. */
  has_hooks: boolean;
}

/** The conditions under which the runs of a batch start. */
export interface Conditions {
  /** Sources that are deleted or inactive. */
  inactive: Set<SourceId>;
  /** Accounts with waiting runs: a new run waits behind them. */
  waiting: Set<UserId>;
  /** Sources whose facts have not arrived. */
  unknown: SourceId[];
  /** How many runs of a source may be in progress, if it is more than one. */
  atATime: Partial<Record<SourceId, number>>;
}

/** SQL: no other replica than this one ($3) holds a run of the source. Not NOT EXISTS, for which PostgreSQL may read the whole table to build a hash. */
const isFree = (sourceId: string): string =>
  `(SELECT true FROM queued_run held WHERE held.source_id = ${sourceId} AND held.held_by <> $3 AND ${isLeased('held.held_until')} LIMIT 1) IS NULL`;

/** SQL: the source with waiting runs of the account $1 that follows this one, in the order of the ids. By rows, which only the index of both columns has in order. */
const sourceAfter = (sourceId: string): string => `(
  SELECT CASE WHEN account_id = $1 THEN source_id END FROM queued_run
  WHERE (account_id, source_id) > ($1, ${sourceId}) ORDER BY account_id, source_id LIMIT 1)`;

/** SQL: the same; the first one follows the last one. */
const nextSource = (sourceId: string): string => `coalesce(${sourceAfter(sourceId)}, ${sourceAfter("''")})`;

/** SQL that deletes the runs of a deleted source ($1), except those of its hooks. */
export const DELETE_RUNS_OF_SOURCE = 'DELETE FROM queued_run WHERE source_id = $1 AND NOT hook';

/** The only writer of the tables `queued_run` and `queue_lease`. Prepared SQL: every run passes through it, and its statements walk an index and take leases. */
@Injectable()
export class QueuedRunsRepository {
  constructor(private readonly database: Database) {}

  async conditions(sourceIds: SourceId[], accountIds: UserId[]): Promise<Conditions> {
    const { rows } = await this.database.query<{
      inactive: SourceId[];
      waiting: UserId[];
      unknown: SourceId[];
      at_a_time: Conditions['atATime'] | null;
    }>({
      name: 'queue-conditions',
      // one statement per batch of the topic, because every run needs it
      text: `SELECT ARRAY(SELECT id FROM emitter WHERE id = ANY($1) AND (deleted OR NOT active)) AS inactive,
                    ARRAY(SELECT id FROM unnest($2::text[]) AS id WHERE EXISTS (SELECT FROM queued_run WHERE account_id = id)) AS waiting,
                    ARRAY(SELECT new.id FROM unnest($1::text[]) AS new (id) WHERE NOT EXISTS (SELECT FROM emitter WHERE id = new.id)) AS unknown,
                    (SELECT json_object_agg(source_id, runs_at_a_time) FROM deployment WHERE source_id = ANY($1) AND runs_at_a_time > 1) AS at_a_time`,
      values: [sourceIds, accountIds],
    });
    const { inactive, waiting, unknown, at_a_time } = rows[0]!;
    return { inactive: new Set(inactive), waiting: new Set(waiting), unknown, atATime: at_a_time ?? {} };
  }

  /**
   * Adds runs, in this order, behind those that already wait. A run that is already queued keeps its position. A run that is being deleted with its source
   * counts as queued: waiting for the end of the deletion would stop the runs of all accounts for as long as it takes.
   *
   * @param held come first
   */
  async add(runs: RunRequest[], { session = this.database, held }: { session?: Session; held?: HeldRuns } = {}): Promise<void> {
    const requests = [...(held?.runs ?? []), ...runs].map((run) => JSON.stringify(run));
    await session.query({
      name: 'queue-add',
      // the sizes come from here, because PostgreSQL takes up to 50 ms to print a megabyte
      text: `INSERT INTO queued_run (run_id, account_id, source_id, hook, request, bytes, held_by, held_until)
             SELECT r->>'run_id', r->>'owner_id', r->>'source_id', r ? 'hook', r, ($5::int[])[n],
                    CASE WHEN n <= $2 THEN $3 END, CASE WHEN n <= $2 THEN now() + make_interval(secs => $4) END
             FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS e (r, n)
             LEFT JOIN LATERAL (SELECT run_id FROM queued_run WHERE run_id = r->>'run_id' LIMIT 1) AS known ON true
             WHERE known.run_id IS NULL ORDER BY n
             ON CONFLICT DO NOTHING`,
      values: [
        `[${requests.join()}]`,
        held?.runs.length ?? 0,
        held?.replica ?? null,
        held?.seconds ?? null,
        requests.map((request) => Buffer.byteLength(request)),
      ],
    });
  }

  /** Extends the hold of a replica on these runs from now; 0 seconds end it. The run of a locked row has just ended, or is being deleted. */
  async hold(runIds: string[], replica: Replica, seconds: number): Promise<void> {
    await this.database.query({
      name: 'queue-hold',
      text: `UPDATE queued_run SET held_until = now() + make_interval(secs => $3) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM queued_run WHERE run_id = ANY($1) AND held_by = $2 FOR UPDATE SKIP LOCKED))`,
      values: [runIds, replica, seconds],
    });
  }

  /**
   * The next runs of an account, in the order in which they are taken, without those in `taken`: its hooks, oldest first; then the first run of each source
   * before the second of any, and so on, at most TAKEN_PER_SOURCE of one. Those in `taken` count. Sources take turns in the order of their ids, beginning
   * behind `after`. No run comes before a hook of its source: if more hooks wait than may be taken, no other runs come.
   *
   * It leaves out sources of which another replica holds a run, and ends when the runs have NEXT_BYTES; the last one may exceed it.
   */
  async next(accountId: UserId, taken: string[], { replica, hooks, runs, further, after }: NextRuns): Promise<WaitingRun[]> {
    const { rows } = await this.database.query<{ runs: WaitingRun[] | null }>({
      name: 'queue-next',
      // steps from source to source, because 100 000 waiting runs of one source may precede the first run of another; only the chosen requests are read
      // CASE keeps the order of the steps, which a join could change
      text: `WITH RECURSIVE hooks AS MATERIALIZED (
               SELECT seq, bytes FROM queued_run
               WHERE account_id = $1 AND hook AND run_id <> ALL($2) AND ${isFree('queued_run.source_id')} ORDER BY seq LIMIT $4
             ), source (id) AS (
               SELECT ${nextSource('$7')}
               UNION
               SELECT ${nextSource('source.id')} FROM source WHERE source.id IS NOT NULL
             ), walked AS MATERIALIZED (
               SELECT id FROM source WHERE CASE WHEN id IS NOT NULL THEN ${isFree('source.id')} END LIMIT ${WALKED}
             ), runs AS (
               SELECT seq, bytes, nth, row_number() OVER (ORDER BY nth, walked.id <= $7, walked.id) AS place FROM walked CROSS JOIN LATERAL (
                 SELECT seq, run_id, bytes, row_number() OVER (ORDER BY seq) AS nth
                 FROM queued_run WHERE account_id = $1 AND source_id = walked.id AND NOT hook ORDER BY seq LIMIT ${TAKEN_PER_SOURCE}
               ) AS oldest
               WHERE oldest.run_id <> ALL($2)
               ORDER BY place LIMIT CASE WHEN (SELECT count(*) FROM hooks) < $4 THEN $5 ELSE 0 END
             ), due AS (
               SELECT seq, bytes, row_number() OVER (ORDER BY place, seq) AS place FROM (
                 SELECT seq, bytes, 0 AS place FROM hooks
                 UNION ALL
                 SELECT seq, bytes, place FROM runs WHERE nth = 1 OR place <= $6
               ) AS ordered
             ), fitting AS (
               SELECT seq, place FROM (SELECT seq, place, sum(bytes) OVER (ORDER BY place) - bytes AS before FROM due) AS summed WHERE before < ${NEXT_BYTES}
             )
             SELECT json_agg(json_build_object('request', request, 'bytes', bytes, 'at_a_time', coalesce(
               (SELECT runs_at_a_time FROM deployment WHERE source_id = chosen.source_id), 1)) ORDER BY place) AS runs
             FROM fitting CROSS JOIN LATERAL (SELECT source_id, request, bytes FROM queued_run WHERE seq = fitting.seq LIMIT 1) AS chosen`,
      values: [accountId, taken, replica, hooks, runs, further, after],
    });
    return rows[0]?.runs ?? [];
  }

  /** Those of these runs that wait. */
  async waiting(runIds: string[]): Promise<Set<string>> {
    const { rows } = await this.database.query<{ run_id: string }>({
      name: 'queue-waiting',
      text: 'SELECT run_id FROM queued_run WHERE run_id = ANY($1)',
      values: [runIds],
    });
    return new Set(rows.map(({ run_id }) => run_id));
  }

  /** Whether other runs of the source than these wait. */
  async hasOthers(sourceId: SourceId, runIds: string[]): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'queue-others',
      text: 'SELECT FROM queued_run WHERE source_id = $1 AND run_id <> ALL($2) LIMIT 1',
      values: [sourceId, runIds],
    });
    return rowCount !== 0;
  }

  /** The run was not executed. */
  async remove(runId: string): Promise<void> {
    await this.database.query({ name: 'queue-remove', text: 'DELETE FROM queued_run WHERE run_id = $1', values: [runId] });
  }

  /**
   * Deletes the runs of an inactive source, except those of its hooks, and reports them on `$errors`. The few that a replica may already have taken are left
   * to it: it skips and reports each. Until the transaction commits, replicas take further ones, which are reported as well.
   */
  async removeOfInactive(transaction: Transaction, sourceId: SourceId): Promise<void> {
    const { rows } = await transaction.query<{ newest: RunRequest; count: number }>({
      name: 'queue-remove-inactive',
      text: `WITH removed AS (
               DELETE FROM queued_run WHERE seq = ANY (ARRAY(
                 SELECT seq FROM queued_run
                 WHERE source_id = $1 AND NOT hook AND ${isLeased('held_until')} IS NOT TRUE
                 ORDER BY seq OFFSET ${TAKEN_PER_SOURCE}))
               RETURNING seq, request->>'trigger' AS trigger
             ), lost AS (
               SELECT max(seq) AS seq, count(*)::int AS count FROM removed WHERE trigger <> 'timer'
             )
             SELECT count, request AS newest FROM lost JOIN queued_run USING (seq)`,
      values: [sourceId],
    });
    await addToOutbox(
      transaction,
      rows.map(({ newest, count }) => sourceInactive(newest, count)),
    );
  }

  /** Reports those of dropped runs whose sources are not deleted. Those that have ended have only been delivered again. */
  async reportDropped(runs: RunRequest[]): Promise<void> {
    const missed = runs.filter(isMissed);
    const { rows } = await this.database.query<{ run_id: string }>(
      `SELECT run_id FROM unnest($1::text[], $2::text[]) AS run (run_id, source_id)
       WHERE NOT EXISTS (SELECT FROM run_done WHERE run_id = run.run_id) AND NOT EXISTS (SELECT FROM emitter WHERE id = run.source_id AND deleted)`,
      [missed.map(({ run_id }) => run_id), missed.map(({ source_id }) => source_id)],
    );
    const lost = new Set(rows.map(({ run_id }) => run_id));
    const bySource = Map.groupBy(
      missed.filter(({ run_id }) => lost.has(run_id)),
      ({ source_id }) => source_id,
    );
    await addToOutbox(
      this.database,
      [...bySource.values()].map((ofSource) => sourceInactive(ofSource.at(-1)!, ofSource.length)),
    );
  }

  /** The number of waiting runs of an account, counted up to `limit`. */
  async count(accountId: UserId, limit: number): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>({
      name: 'queue-count',
      text: `SELECT count(*)::int AS count FROM (SELECT FROM queued_run WHERE account_id = $1 LIMIT $2) AS waiting`,
      values: [accountId, limit],
    });
    return rows[0]?.count ?? 0;
  }

  /** The accounts with waiting runs that no other replica has leased. */
  async accountsWaiting(replica: Replica): Promise<WaitingAccount[]> {
    const { rows } = await this.database.query<WaitingAccount>({
      name: 'queue-accounts',
      text: `WITH RECURSIVE account (id) AS (
               (SELECT account_id FROM queued_run ORDER BY account_id LIMIT 1)
               UNION ALL
               SELECT (SELECT account_id FROM queued_run WHERE account_id > account.id ORDER BY account_id LIMIT 1) FROM account WHERE account.id IS NOT NULL
             )
             SELECT id, EXISTS (SELECT FROM queued_run WHERE account_id = account.id AND hook) AS has_hooks FROM account WHERE id IS NOT NULL
             AND NOT EXISTS (SELECT FROM queue_lease WHERE account_id = account.id AND replica <> $1 AND ${isLeased('leased_until')})`,
      values: [replica],
    });
    return rows;
  }

  /**
   * Takes or renews the lease of an account; false when another replica has it. It does not wait for the disk: if PostgreSQL crashes and loses the lease,
   * two replicas may execute the same runs, whose ids make their effects happen once.
   */
  async lease(accountId: UserId, replica: Replica, seconds: number): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'queue-lease',
      text: `INSERT INTO queue_lease (account_id, replica, leased_until)
             SELECT $1, $2, now() + make_interval(secs => $3) FROM set_config('synchronous_commit', 'off', true)
             ON CONFLICT (account_id) DO UPDATE SET replica = excluded.replica, leased_until = excluded.leased_until
             WHERE queue_lease.replica = excluded.replica OR NOT ${isLeased('queue_lease.leased_until')}`,
      values: [accountId, replica, seconds],
    });
    return rowCount === 1;
  }

  async release(replica: Replica, accountIds: UserId[]): Promise<void> {
    await this.database.query({
      name: 'queue-release',
      text: `DELETE FROM queue_lease USING set_config('synchronous_commit', 'off', true) WHERE replica = $1 AND account_id = ANY($2)`,
      values: [replica, accountIds],
    });
  }

  /** The replica ends: releases all that it has leased, and holds no run any more. */
  async releaseAll(replica: Replica): Promise<void> {
    await this.database.query('DELETE FROM queue_lease WHERE replica = $1', [replica]);
    await this.database.query('UPDATE queued_run SET held_until = NULL WHERE held_by = $1', [replica]);
  }
}
