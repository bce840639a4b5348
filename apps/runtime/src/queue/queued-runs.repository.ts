import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import type { RunRequest, SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, type Session, type Transaction } from '#database';
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

/** The most runs of a source that a replica takes at a time, so that other sources of the account have their turns. */
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

export interface NextRuns {
  /** The one that looks. */
  replica: Replica;
  perSource: number;
  limit: number;
  /** The id of the source that was looked at last; '': begin at the first one. */
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

/** SQL: no other replica than this one holds a run of the source. */
const isFree = (sourceId: string, replica: string): string =>
  `NOT EXISTS (SELECT FROM queued_run held WHERE held.source_id = ${sourceId} AND held.held_by <> ${replica} AND held.held_until > now())`;

/** SQL: the runs of `due`, as JSON. Only the requests of those that fit into NEXT_BYTES are read. */
const DUE_RUNS = `(
  SELECT json_agg(json_build_object('request', request, 'bytes', bytes, 'at_a_time', coalesce(runs_at_a_time, 1)) ORDER BY seq)
  FROM queued_run LEFT JOIN deployment USING (source_id) WHERE seq = ANY (ARRAY(
    SELECT seq FROM (SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS before FROM due) AS summed WHERE before < ${NEXT_BYTES})))`;

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

  /** Holds runs that it holds for longer, or no longer: 0 seconds. A locked row has just ended, or is being deleted. */
  async hold(runIds: string[], replica: Replica, seconds: number): Promise<void> {
    await this.database.query({
      name: 'queue-hold',
      text: `UPDATE queued_run SET held_until = now() + make_interval(secs => $3) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM queued_run WHERE run_id = ANY($1) AND held_by = $2 FOR UPDATE SKIP LOCKED))`,
      values: [runIds, replica, seconds],
    });
  }

  /**
   * The next runs of an account: the oldest of each of its sources, at most `perSource` of one source and `limit` in total, and at most NEXT_BYTES before the last one, without
   * those in `taken`, and without sources of which another replica holds a run. An account may have many sources with waiting runs: it looks at WALKED of them, in the order of
   * their ids, from the one behind `after` on.
   *
   * @returns `after` for the next call: '' if it has looked at the last source
   */
  async next(
    accountId: UserId,
    taken: string[],
    { replica, perSource, limit, after }: NextRuns,
  ): Promise<{ runs: WaitingRun[]; after: string }> {
    const { rows } = await this.database.query<{ runs: WaitingRun[] | null; sources: number; last: string | null }>({
      name: 'queue-next',
      // steps from source to source, because 100 000 waiting runs of one source may precede the first run of another; only the chosen requests are read
      text: `WITH RECURSIVE source (id) AS (
               (SELECT source_id FROM queued_run WHERE account_id = $1 AND source_id > $5 ORDER BY source_id LIMIT 1)
               UNION ALL
               SELECT (SELECT source_id FROM queued_run WHERE account_id = $1 AND source_id > source.id ORDER BY source_id LIMIT 1)
               FROM source WHERE source.id IS NOT NULL
             ), walked AS MATERIALIZED (
               SELECT id FROM source WHERE id IS NOT NULL LIMIT ${WALKED}
             ), due AS (
               SELECT oldest.seq, oldest.bytes FROM walked CROSS JOIN LATERAL (
                 SELECT seq, run_id, bytes FROM queued_run WHERE account_id = $1 AND source_id = walked.id ORDER BY seq LIMIT $3
               ) AS oldest
               WHERE oldest.run_id <> ALL($2)
                 AND ${isFree('walked.id', '$6')}
               ORDER BY oldest.seq LIMIT $4
             )
             SELECT (SELECT count(*)::int FROM walked) AS sources, (SELECT max(id) FROM walked) AS last, ${DUE_RUNS} AS runs`,
      values: [accountId, taken, perSource, limit, after, replica],
    });
    const [{ runs, sources, last } = { runs: null, sources: 0, last: null }] = rows;
    return { runs: runs ?? [], after: sources === WALKED ? (last ?? '') : '' };
  }

  /** The next hooks of an account, without those in `taken`. As `next`, but in the order of all its sources. */
  async nextHooks(accountId: UserId, taken: string[], { replica, limit }: Pick<NextRuns, 'replica' | 'limit'>): Promise<WaitingRun[]> {
    const { rows } = await this.database.query<{ runs: WaitingRun[] | null }>({
      name: 'queue-next-hooks',
      text: `WITH due AS (
               SELECT seq, bytes FROM queued_run
               WHERE account_id = $1 AND hook AND run_id <> ALL($2) AND ${isFree('queued_run.source_id', '$4')} ORDER BY seq LIMIT $3
             )
             SELECT ${DUE_RUNS} AS runs`,
      values: [accountId, taken, limit, replica],
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

  /** The run was not executed. */
  async remove(runId: string): Promise<void> {
    await this.database.query({ name: 'queue-remove', text: 'DELETE FROM queued_run WHERE run_id = $1', values: [runId] });
  }

  /** Deletes the runs of a deleted source, except those of its hooks. */
  async removeOfSource(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.query({
      name: 'queue-remove-source',
      text: 'DELETE FROM queued_run WHERE source_id = $1 AND NOT hook',
      values: [sourceId],
    });
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
                 WHERE source_id = $1 AND NOT hook AND (held_until IS NULL OR held_until < now())
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
  async accountsWaiting(replica: Replica): Promise<UserId[]> {
    const { rows } = await this.database.query<{ id: UserId }>({
      name: 'queue-accounts',
      text: `WITH RECURSIVE account (id) AS (
               (SELECT account_id FROM queued_run ORDER BY account_id LIMIT 1)
               UNION ALL
               SELECT (SELECT account_id FROM queued_run WHERE account_id > account.id ORDER BY account_id LIMIT 1) FROM account WHERE account.id IS NOT NULL
             )
             SELECT id FROM account WHERE id IS NOT NULL
             AND NOT EXISTS (SELECT FROM queue_lease WHERE account_id = account.id AND replica <> $1 AND leased_until > now())`,
      values: [replica],
    });
    return rows.map(({ id }) => id);
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
             WHERE queue_lease.replica = excluded.replica OR queue_lease.leased_until < now()`,
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
