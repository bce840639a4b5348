import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { RECORDS_GONE_AFTER_DAYS, type RunFinished, type UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, deleteOlder, type Transaction } from '#database';

/** The usage of an account's sources on a day (UTC). */
@Entity('usage')
export class UsageRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn('date')
  day!: string;

  @Column('bigint', { default: 0 })
  compute_ms!: number;

  @Column('bigint', { default: 0 })
  invocations!: number;
}

/** A run that is already counted: a fact may arrive twice. */
@Entity('run_counted')
@Index('run_counted_age', ['counted_at'])
export class CountedRun {
  @PrimaryColumn(BYTEWISE_TEXT)
  run_id!: string;

  @Column(CREATED_AT)
  counted_at!: Date;
}

const KEEP_MS = RECORDS_GONE_AFTER_DAYS * 24 * 3_600_000;

/** The only writer of the tables `usage` and `run_counted`, for what the API shows. The runtime counts for its quotas itself (ADR 18). */
@Injectable()
export class UsageRepository {
  constructor(private readonly database: Database) {}

  /**
   * Adds finished runs to the usage of their accounts and days (UTC). Each run counts once, even if its fact arrives twice, and none of an account that was
   * deleted meanwhile. SQL: one statement for a batch.
   */
  async count(runs: RunFinished[]): Promise<void> {
    await this.database.query({
      name: 'usage-count',
      // DISTINCT: a batch may contain a run twice, and ON CONFLICT does not see the rows of its own statement
      text: `WITH finished AS (
               SELECT DISTINCT ON (run_id) * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[]) AS r (run_id, account_id, at, ms) ORDER BY run_id
             ), fresh AS (
               INSERT INTO run_counted (run_id) SELECT run_id FROM finished ON CONFLICT DO NOTHING RETURNING run_id
             )
             INSERT INTO usage (account_id, day, compute_ms, invocations)
             SELECT account_id, (at AT TIME ZONE 'UTC')::date, sum(ms), count(*) FROM finished JOIN fresh USING (run_id) JOIN account ON account.id = account_id
             GROUP BY 1, 2 ORDER BY 1, 2
             ON CONFLICT (account_id, day) DO UPDATE SET compute_ms = usage.compute_ms + excluded.compute_ms, invocations = usage.invocations + excluded.invocations`,
      values: [
        runs.map(({ run_id }) => run_id),
        runs.map(({ owner_id }) => owner_id),
        runs.map(({ finished_at_ms }) => new Date(finished_at_ms)),
        runs.map(({ compute_ms }) => compute_ms),
      ],
    });
  }

  /** Deletes counted runs whose fact cannot arrive again, because Kafka has deleted it. */
  async deleteOld(): Promise<void> {
    await deleteOlder(this.database, 'run_counted', 'counted_at', new Date(Date.now() - KEEP_MS));
  }
}

/** Deletes the usage of a deleted account. */
export async function deleteUsageOf(transaction: Transaction, accountId: UserId): Promise<void> {
  await transaction.rows(UsageRow).delete({ account_id: accountId });
}
