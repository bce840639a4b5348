import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Schedule, SourceId, UserId } from '#contracts';
import { Database, FairBatches, OF_OTHERS, type Session, type Transaction } from '#database';
import { DueRows, msToFirst } from '#due-work';

export interface DueTimer {
  source_id: SourceId;
  owner_id: UserId;
  prop: string;
  schedule: Schedule;
  next_run_at: Date;
  /** When its schedule was set, or its next tick corrected; null: by an older version. */
  set_at: Date | null;
  /** The run that has not ended and is requested again. */
  run_id: string | null;
}

type DistantTimer = Pick<DueTimer, 'source_id' | 'prop' | 'schedule' | 'next_run_at'> & { now: Date };
type TimerKey = Pick<DueTimer, 'source_id' | 'prop'> & { id: string; account_id: UserId | null };

/** How long a timer waits for the end of its run before it requests it again. A request for a run is lost only if the topic is. */
const GIVE_UP = '1 hour';
/** SQL: the time of the last tick, whose run has not ended: see {@link tickRunId}. */
const LAST_TICK = "to_timestamp(substring(run_id FROM '[0-9]+$')::float8 / 1000)";

/**
 * One tick is one run, even if it is requested twice, or once more by a restored database. After the clock was set back, a timer that is set again may tick at
 * the same time a second time: these are two runs. The id is in headers and cursors: it has no other characters of a prop's name, and few of them.
 */
export function tickRunId({ source_id, prop, next_run_at, set_at, run_id }: Omit<DueTimer, 'owner_id' | 'schedule'>): string {
  if (run_id !== null) return run_id;
  const name = /^[\w$-]{1,64}$/.test(prop) ? prop : createHash('sha256').update(prop).digest('base64url');
  return [source_id, name, ...(set_at ? [set_at.getTime().toString(36)] : []), next_run_at.getTime()].join('.');
}

/**
 * The only writer of the table `timer`: the next ticks of all timers. While a timer's run is in progress, `next_run_at` is the time at which it is requested
 * again, and `resume_at` the next tick:
 *
 *   ticks ──► next_run_at = in an hour, resume_at = next tick, run_id = the run ──► the run has ended ──► next_run_at = resume_at
 *     ▲                                                                     └────► it has not ───┐
 *     └──────────────────────────────── the same tick once more: the same run ◄──────────────────┘
 *
 * Prepared SQL: it runs for each tick and the end of each run, and claims timers by SKIP LOCKED.
 */
@Injectable()
export class TimersRepository extends DueRows {
  private readonly batches = new FairBatches<TimerKey>({
    name: 'timers',
    table: 'timer',
    columns: `source_id, prop, account_id, source_id || '.' || prop AS id`,
    key: 'id',
    order: 'next_run_at',
    bytes: 'pg_column_size(schedule)',
    due: 'next_run_at <= now()',
  });

  constructor(private readonly database: Database) {
    super();
  }

  /**
   * Locks due timers, the oldest ones or, while many are due, those of the accounts whose turn it is, passes them to `tick` and stores the next ticks that
   * it returns (null: never). Returns the number of these timers. `now` is the time by which they are due: the clock of this process may show another one.
   *
   * @param without accounts whose timers do not tick now
   */
  async claimDue(
    without: UserId[],
    tick: (transaction: Transaction, due: DueTimer[], now: Date) => Promise<(Date | null)[]>,
  ): Promise<number> {
    const { rows: found } = await this.batches.next(this.database, without);
    if (found.length === 0) return 0;
    if (found.some(({ account_id }) => account_id === null)) await this.nameAccounts();
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<DueTimer & { now: Date }>({
        name: 'timers-due',
        text: `SELECT t.source_id, d.owner_id, t.prop, t.schedule, coalesce(${LAST_TICK}, t.next_run_at) AS next_run_at, t.set_at, t.run_id, now() AS now
               FROM unnest($1::text[], $2::text[]) AS found (source_id, prop) JOIN timer t USING (source_id, prop) JOIN deployment d USING (source_id)
               WHERE t.next_run_at <= now() AND d.owner_id <> ALL ($3) ORDER BY t.next_run_at FOR UPDATE OF t SKIP LOCKED`,
        values: [found.map(({ source_id }) => source_id), found.map(({ prop }) => prop), without],
      });
      const [first] = rows;
      if (!first) return 0;
      const next = await tick(transaction, rows, first.now);
      await transaction.query({
        name: 'timers-next',
        text: `UPDATE timer t SET next_run_at = now() + interval '${GIVE_UP}', resume_at = coalesce(n.at, 'infinity'), run_id = n.run_id
               FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[]) AS n (source_id, prop, at, run_id)
               WHERE t.source_id = n.source_id AND t.prop = n.prop`,
        values: [rows.map(({ source_id }) => source_id), rows.map(({ prop }) => prop), next, rows.map(tickRunId)],
      });
      return rows.length;
    });
  }

  /**
   * Sets the timers: one whose schedule has not changed keeps its next tick. `next` returns the first tick of a new one that is set
   * `now`. SQL, for the comparison of schedules, and for the clock by which timers are due.
   */
  async put(
    transaction: Transaction,
    { source_id, owner_id }: Pick<DueTimer, 'source_id' | 'owner_id'>,
    schedules: Record<string, Schedule>,
    next: (prop: string, schedule: Schedule, now: Date) => Date | null,
  ): Promise<void> {
    const wanted = Object.entries(schedules);
    const { rows } = await transaction.query<{ now: Date; kept: string[] }>({
      name: 'timers-kept',
      text: `SELECT clock_timestamp() AS now, ARRAY(
               SELECT prop FROM timer JOIN unnest($2::text[], $3::jsonb[]) AS wanted (prop, schedule) USING (prop)
               WHERE source_id = $1 AND timer.schedule::jsonb = wanted.schedule) AS kept`,
      values: [source_id, wanted.map(([prop]) => prop), wanted.map(([, schedule]) => JSON.stringify(schedule))],
    });
    const { now, kept } = rows[0]!;
    const timers = wanted.flatMap(([prop, schedule]) => {
      const at = kept.includes(prop) ? null : next(prop, schedule, now);
      return at ? [{ prop, schedule: JSON.stringify(schedule), at }] : [];
    });
    const props = timers.map(({ prop }) => prop);
    await transaction.query({
      name: 'timers-remove',
      text: 'DELETE FROM timer WHERE source_id = $1 AND prop <> ALL($2)',
      values: [source_id, [...kept, ...props]],
    });
    if (props.length === 0) return;
    await transaction.query(
      `INSERT INTO timer (source_id, account_id, set_at, prop, schedule, next_run_at)
       SELECT $1, $2, $3, * FROM unnest($4::text[], $5::json[], $6::timestamptz[])
       ON CONFLICT (source_id, prop) DO UPDATE
       SET schedule = excluded.schedule, next_run_at = excluded.next_run_at, set_at = excluded.set_at, resume_at = NULL, run_id = NULL`,
      [source_id, owner_id, now, props, timers.map(({ schedule }) => schedule), timers.map(({ at }) => at)],
    );
    this.scheduled(transaction, Math.min(...timers.map(({ at }) => at.getTime())) - now.getTime());
  }

  /** Resumes the timer when the run of its tick has ended, or was skipped. A timer that was set again in the meantime is not changed. */
  async resume(session: Session, sourceId: string, runId: string): Promise<void> {
    // before version 17, PostgreSQL subtracts no infinite times
    const { rows } = await session.query<{ ms: number }>({
      name: 'timer-resume',
      text: `UPDATE timer SET next_run_at = resume_at, resume_at = NULL, run_id = NULL WHERE source_id = $1 AND run_id = $2
             RETURNING (extract(epoch FROM next_run_at) - extract(epoch FROM now()))::float8 * 1000 AS ms`,
      values: [sourceId, runId],
    });
    for (const { ms } of rows) this.scheduled(session, ms);
  }

  /**
   * Timers whose next tick is later than it can be if the clock of the database was never ahead: interval timers by more than a minute, and all with a cron
   * expression that do not tick within a minute, because only the expression decides. At most `limit`, in the order of their keys, from behind `after`.
   */
  async distant(after: Pick<DueTimer, 'source_id' | 'prop'>, limit: number): Promise<DistantTimer[]> {
    const { rows } = await this.database.query<DistantTimer>(
      `SELECT source_id, prop, schedule, next_run_at, now() AS now FROM timer
       WHERE (source_id, prop) > ($1, $2) AND run_id IS NULL AND next_run_at > now() + interval '1 minute' AND next_run_at < 'infinity'
         AND extract(epoch FROM next_run_at - now()) > coalesce((schedule->>'interval_seconds')::float8, 0) + 60
       ORDER BY source_id, prop LIMIT $3`,
      [after.source_id, after.prop, limit],
    );
    return rows;
  }

  /** Moves next ticks forward from `next_run_at` to `at`. Leaves out timers that were changed since, or that another replica changes now. Returns their number. */
  async bringForward(ticks: (Pick<DueTimer, 'source_id' | 'prop' | 'next_run_at'> & { at: Date })[]): Promise<number> {
    const { rowCount } = await this.database.query(
      `UPDATE timer t SET next_run_at = late.at, set_at = now() FROM (
         SELECT source_id, prop, at FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS n (source_id, prop, next_run_at, at)
         JOIN timer USING (source_id, prop, next_run_at) WHERE run_id IS NULL FOR UPDATE OF timer SKIP LOCKED
       ) AS late WHERE t.source_id = late.source_id AND t.prop = late.prop`,
      [
        ticks.map(({ source_id }) => source_id),
        ticks.map(({ prop }) => prop),
        ticks.map(({ next_run_at }) => next_run_at),
        ticks.map(({ at }) => at),
      ],
    );
    return rowCount ?? 0;
  }

  /**
   * Requests the runs of ticks again that have not ended and wait nowhere, because Kafka has lost requests. Returns their number.
   * @param seconds which have to pass after a request: its run may be in progress
   */
  async repeatLost(seconds = 0): Promise<number> {
    const { rowCount } = await this.database.query(
      // without those whose runs end at this moment, because waiting for these could be a deadlock
      `UPDATE timer SET next_run_at = greatest(now(), least(now(), next_run_at - interval '${GIVE_UP}') + make_interval(secs => $1))
       WHERE (source_id, prop) IN (
         SELECT source_id, prop FROM timer
         WHERE run_id IS NOT NULL AND next_run_at > now() + make_interval(secs => $1)
           AND NOT EXISTS (SELECT FROM queued_run WHERE queued_run.run_id = timer.run_id)
         FOR UPDATE SKIP LOCKED)`,
      [seconds],
    );
    return rowCount ?? 0;
  }

  /** @param without accounts whose timers do not tick now */
  msToNext(without: UserId[] = []): Promise<number | null> {
    if (without.length === 0) return msToFirst(this.database, 'timers-first', firstOf('true'));
    return msToFirst(this.database, 'timers-first-of-others', firstOf(OF_OTHERS), [without]);
  }

  /**
   * Names the accounts of timers that an older version has set, without those that another replica changes now. While such a timer is due, accounts
   * do not take turns, and `msToNext` does not see that its account may be full.
   */
  private async nameAccounts(): Promise<void> {
    await this.database.query(
      `UPDATE timer t SET account_id = named.owner_id FROM (
         SELECT source_id, prop, owner_id FROM timer JOIN deployment USING (source_id) WHERE account_id IS NULL FOR UPDATE OF timer SKIP LOCKED
       ) AS named WHERE t.source_id = named.source_id AND t.prop = named.prop`,
    );
  }
}

/** SQL: the time to the first tick of those timers. */
const firstOf = (timers: string): string =>
  `SELECT extract(epoch FROM next_run_at - now())::float8 * 1000 AS ms FROM timer WHERE next_run_at < 'infinity' AND ${timers} ORDER BY next_run_at LIMIT 1`;
