import { Injectable } from '@nestjs/common';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, type Transaction } from '#database';
import { type AccountRecord, addedToOutbox, outboxRows, outboxValues, WAKE_RELAY } from '#outbox';

/** The usage of an account's runs on a day (UTC). */
@Entity('usage')
export class UsageRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn('date')
  day!: string;

  @Column('bigint')
  compute_ms!: number;

  @Column('bigint')
  invocations!: number;
}

/** A source that was notified on a day that its account is over its quota. */
@Entity('quota_notice')
export class QuotaNotice {
  @PrimaryColumn(BYTEWISE_TEXT)
  source_id!: SourceId;

  @PrimaryColumn('date')
  day!: string;
}

/** The usage of an account today, its waiting runs included. */
export interface UsedAndWaiting {
  /** Of the runs that have ended. */
  compute_ms: number;
  /** That have ended, or wait in the queue. */
  runs: number;
  /** Of the given runs, those that are stored: they have ended, or wait in the queue. */
  stored: Set<string>;
}

/**
 * The only writer of the tables `usage` and `quota_notice`. The usage that the API shows is counted by the gateway (ADR 18). SQL: the database's clock decides
 * which day it is, and `usedToday` comes before each run.
 */
@Injectable()
export class QuotasRepository {
  constructor(private readonly database: Database) {}

  async usedToday(accountId: string): Promise<{ compute_ms: number; invocations: number }> {
    const { rows } = await this.database.query<{ compute_ms: number; invocations: number }>({
      name: 'usage-today',
      text: "SELECT compute_ms, invocations FROM usage WHERE account_id = $1 AND day = (now() AT TIME ZONE 'UTC')::date",
      values: [accountId],
    });
    return rows[0] ?? { compute_ms: 0, invocations: 0 };
  }

  /** Reads all of it in one statement: a run that ends meanwhile is not counted twice. @param most waiting runs beyond this number do not count */
  async usedAndWaiting(accountId: UserId, runIds: string[], most: number): Promise<UsedAndWaiting> {
    const { rows } = await this.database.query<{ compute_ms: number; runs: number; stored: string[] }>({
      name: 'usage-and-waiting',
      // each run is looked up by its index, whatever the planner assumes about the size of the tables
      text: `SELECT coalesce(sum(compute_ms), 0)::bigint AS compute_ms,
               (coalesce(sum(invocations), 0) + (SELECT count(*) FROM (SELECT FROM queued_run WHERE account_id = $1 LIMIT $3) AS waiting))::bigint AS runs,
               ARRAY(SELECT run.id FROM unnest($2::text[]) AS run (id)
                     LEFT JOIN LATERAL (SELECT run_id FROM run_done WHERE run_id = run.id LIMIT 1) AS done ON true
                     LEFT JOIN LATERAL (SELECT run_id FROM queued_run WHERE run_id = run.id LIMIT 1) AS queued ON true
                     WHERE done.run_id IS NOT NULL OR queued.run_id IS NOT NULL) AS stored
             FROM usage WHERE account_id = $1 AND day = (now() AT TIME ZONE 'UTC')::date`,
      values: [accountId, runIds, most],
    });
    const { stored, ...used } = rows[0]!;
    return { ...used, stored: new Set(stored) };
  }

  /** Counts runs. */
  async count(transaction: Transaction, runs: { account_id: string; compute_ms: number }[]): Promise<void> {
    if (runs.length === 0) return;
    await transaction.query({
      name: 'usage-add',
      // in the order of the ids: two replicas would otherwise wait for each other
      text: `INSERT INTO usage (account_id, day, compute_ms, invocations)
             SELECT account_id, (now() AT TIME ZONE 'UTC')::date, sum(compute_ms), count(*) FROM unnest($1::text[], $2::int[]) AS run (account_id, compute_ms)
             GROUP BY account_id ORDER BY account_id
             ON CONFLICT (account_id, day) DO UPDATE
               SET compute_ms = usage.compute_ms + excluded.compute_ms, invocations = usage.invocations + excluded.invocations`,
      values: [runs.map(({ account_id }) => account_id), runs.map(({ compute_ms }) => compute_ms)],
    });
  }

  /** Stores the event for Kafka, the first time on a day; returns whether it was that. One statement: it follows each run that is skipped. */
  async addNotice(sourceId: string, event: AccountRecord): Promise<boolean> {
    const records = `(SELECT record.* FROM ${outboxRows(2)}, first) AS record`;
    const { rowCount } = await this.database.query({
      name: 'quota-notice',
      text: `WITH first AS (
               INSERT INTO quota_notice (source_id, day) VALUES ($1, (now() AT TIME ZONE 'UTC')::date) ON CONFLICT DO NOTHING RETURNING source_id
             ), added AS (${addedToOutbox(records)})
             SELECT ${WAKE_RELAY} FROM first`,
      values: [sourceId, ...outboxValues([event])],
    });
    return rowCount === 1;
  }

  async deleteUsage(accountId: UserId): Promise<void> {
    await this.database.rows(UsageRow).delete({ account_id: accountId });
  }

  /** Deletes the days that are no longer read. */
  async deleteOld(): Promise<void> {
    await this.database.query("DELETE FROM quota_notice WHERE day < (now() AT TIME ZONE 'UTC')::date - 2");
    await this.database.query("DELETE FROM usage WHERE day < (now() AT TIME ZONE 'UTC')::date - 40");
  }
}
