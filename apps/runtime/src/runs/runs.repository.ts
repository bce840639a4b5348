import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { RunRequest, SourceId, UserId } from '#contracts';
import { Database, deleteOlder, JointWrites, Lookups, type Session, together, type Transaction } from '#database';
import { SumPerKey } from '#limits';
import { Lanes, shares } from '#messaging';
import { type AccountRecord, addedToOutbox, addToOutbox, outboxRows, outboxValues, WAKE_RELAY } from '#outbox';
import { deletionOfDeletedSources } from '../deleted-sources.js';
import { removedFromQueue } from '../queue/queued-runs.repository.js';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { DELETE_STATE, SourceStateRepository } from '../source-state/source-state.repository.js';
import { takeTurns } from '../source-state/source-turns.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { DELETE_WAITING_EMITS, WaitingEmitsRepository } from '../waiting/waiting-emits.repository.js';
import { isLarge } from './run-cost.js';
import type { FinishedRunRow } from './run.entity.js';
import type { RunEffects, RunEntry } from './run-effects.js';

const DAY_MS = 86_400_000;
/** The number of runs of a source that are listed. */
const LISTED = 100;
/** The most runs that are stored together. */
const MOST_TOGETHER = 64;
/** Large outcomes that are stored at the same time, each of another account. */
const LARGE_AT_A_TIME = 4;

/** A run that has ended. `entry`: null if it is not listed. */
interface EndedRun {
  run: Pick<RunRequest, 'run_id' | 'source_id' | 'owner_id' | 'trigger'>;
  entry: RunEntry | null;
  records: AccountRecord[];
}

interface RunWithEffects {
  run: EndedRun['run'];
  effects: RunEffects;
}

const endedRun = ({ run, effects: { entry, records } }: RunWithEffects): EndedRun => ({
  run,
  entry,
  records: records.map((record) => ({ ...record, account: run.owner_id })),
});

/** Called before a changed state is written, when it is the turn of the run. May throw instead. */
export type BeforeWrite = () => Promise<void>;

/** Whether the run changes what the source keeps: its state, its timers, its retried runs. */
const changesSource = ({ run: { trigger }, effects: { db, dedupe, final, attempt } }: RunWithEffects): boolean =>
  trigger === 'timer' || Object.keys(db).length > 0 || dedupe !== null || attempt !== null || final;

/** Whether the run changes no other tables than those that every run changes. */
const isStoredAtOnce = (run: RunWithEffects): boolean => !changesSource(run) && run.effects.waiting.length === 0 && !run.effects.usage;

/** A run that has ended, as far as it is still known. */
export interface EndedRunRow {
  id: string;
  listed: Pick<FinishedRunRow, 'status' | 'started_at' | 'duration_ms' | 'error'> | null;
}

type Nullable<T> = { [Key in keyof T]: T[Key] | null };

/** The window of a page, by ids of runs. */
export interface RunsPage {
  limit: number;
  after?: string;
  before?: string;
}

/** SQL that deletes the state of a deleted source ($1), its list of runs, and the emits of its last hook and of runs that were in progress when it was deleted. */
const DELETE_REST = together(...DELETE_STATE, DELETE_WAITING_EMITS, 'DELETE FROM finished_run WHERE source_id = $1');

/** The only writer of the tables `run_done` and `finished_run`. Prepared SQL: each run executes it. */
@Injectable()
export class RunsRepository {
  private readonly trims = new TrimCounter();
  private readonly done = new Lookups<string, true>((runIds) => this.findDone(runIds));
  private readonly ended = new JointWrites<RunWithEffects, boolean>((runs) => this.write(runs), MOST_TOGETHER);
  private readonly large = new Lanes({ concurrency: LARGE_AT_A_TIME });
  /** How many large outcomes of an account are being stored, or wait for that. */
  private readonly largeOf = new SumPerKey<UserId>();

  constructor(
    private readonly database: Database,
    private readonly timers: TimersRepository,
    private readonly state: SourceStateRepository,
    private readonly waiting: WaitingEmitsRepository,
    private readonly quotas: QuotasRepository,
    private readonly retried: RetriedRunsRepository,
  ) {}

  async isDone(runId: string): Promise<boolean> {
    return (await this.done.get(runId)) ?? false;
  }

  /**
   * Writes the run's effects, each table through its repository, in one transaction with other runs that end at the same time, or in a separate one if
   * they are large. Returns false if they are already written: a run is executed at least once.
   *
   * @param ready called when it is the turn of a run that has to wait for it, before the transaction
   */
  async finish(run: EndedRun['run'], effects: RunEffects, ready?: BeforeWrite): Promise<boolean> {
    const written = await (isLarge(effects) ? this.writeLarge({ run, effects }, ready) : this.writeSmall({ run, effects }, ready));
    if (written && effects.entry && this.trims.isDue(run.source_id)) await this.trim(run.source_id);
    return written;
  }

  private async findDone(runIds: string[]): Promise<Map<string, true>> {
    const { rows } = await this.database.query<{ run_id: string }>({
      name: 'runs-done',
      text: 'SELECT run_id FROM run_done WHERE run_id = ANY($1)',
      values: [runIds],
    });
    return new Map(rows.map(({ run_id }) => [run_id, true]));
  }

  private write(runs: RunWithEffects[]): Promise<boolean[]> {
    const ends = runs.map(endedRun);
    // most runs change nothing else: one statement is their transaction
    if (runs.every(isStoredAtOnce)) return this.end(this.database, ends);
    return this.database.transaction(async (transaction) => {
      const written = await this.end(transaction, ends);
      await this.apply(
        transaction,
        runs.filter((_, index) => written[index]),
      );
      return written;
    });
  }

  private async writeLarge(run: RunWithEffects, ready?: BeforeWrite): Promise<boolean> {
    const { owner_id } = run.run;
    this.largeOf.add(owner_id, 1);
    try {
      return await this.writeInTurn(run, ready);
    } finally {
      this.largeOf.add(owner_id, -1);
    }
  }

  /** Together with others, unless it may wait for a large outcome of its account, which locks the same rows: the others would wait, too. */
  private async writeSmall(run: RunWithEffects, ready?: BeforeWrite): Promise<boolean> {
    const mayWait = this.largeOf.of(run.run.owner_id) > 0 && !isStoredAtOnce(run);
    if (mayWait) return this.writeInTurn(run, ready);
    await ready?.();
    return this.ended.add(run);
  }

  /** One at a time of an account; the accounts take turns. */
  private writeInTurn(run: RunWithEffects, ready?: BeforeWrite): Promise<boolean> {
    return this.large.execute(run.run.owner_id, async () => {
      await ready?.();
      return this.database.transaction(async (transaction) => {
        const { records, ...ended } = endedRun(run);
        const [isNew = false] = await this.end(transaction, [{ ...ended, records: [] }]);
        if (!isNew) return false;
        // a few at a time: to prepare megabytes for one statement would block the main thread
        for (const share of shares(records)) await addToOutbox(transaction, share);
        await this.apply(transaction, [run]);
        return true;
      });
    });
  }

  /** Writes what runs that have ended change in other tables. */
  private async apply(transaction: Transaction, runs: RunWithEffects[]): Promise<void> {
    // first, because megabytes take long, and nothing waits for these rows
    for (const { run, effects } of runs) await this.waiting.add(transaction, run, effects.waiting);
    const changing = runs.filter(changesSource);
    await takeTurns(
      transaction,
      changing.map(({ run }) => run.source_id),
    );
    for (const { run, effects } of changing) {
      await this.state.writeDb(transaction, run.source_id, effects.db);
      if (effects.dedupe) await this.state.writeDedupe(transaction, run.source_id, effects.dedupe);
      if (run.trigger === 'timer') await this.timers.resume(transaction, run.source_id, run.run_id);
    }
    for (const { run } of runs.filter(({ effects }) => effects.final)) {
      await transaction.query({ name: 'source-delete-rest', text: DELETE_REST, values: [run.source_id] });
    }
    await this.retried.settle(
      transaction,
      runs.flatMap(({ effects }) => effects.attempt ?? []),
    );
    // last, because from here on the runs of an account wait for each other until the transaction ends
    await this.quotas.count(
      transaction,
      runs.flatMap(({ effects }) => effects.usage ?? []),
    );
  }

  /** Ends a run that was not executed. @param entry null if its source does not exist */
  async leaveOut(run: EndedRun['run'] & Pick<RunRequest, 'retry'>, entry: RunEntry | null, records: AccountRecord[] = []): Promise<void> {
    const { run_id, source_id } = run;
    await this.retried.leaveOut([run]);
    if (run.trigger === 'timer') await this.timers.resume(this.database, source_id, run_id);
    if (!entry) return;
    const [isNew] = await this.end(this.database, [{ run, entry, records }]);
    if (isNew && this.trims.isDue(source_id)) await this.trim(source_id);
  }

  /** Resumes the timer that waits for this run, if one does. */
  resumeTimer(sourceId: string, runId: string): Promise<void> {
    return this.timers.resume(this.database, sourceId, runId);
  }

  /** The last runs of a source that have ended, newest first, and how many there are. */
  async page(sourceId: string, { limit, after, before }: RunsPage): Promise<{ rows: FinishedRunRow[]; total: number }> {
    const { rows } = await this.database.query<FinishedRunRow>({
      name: 'runs-page',
      text: `SELECT * FROM finished_run WHERE source_id = $1 ORDER BY position DESC LIMIT ${LISTED}`,
      values: [sourceId],
    });
    // a run that is not listed any longer is older than all that are
    const placeOf = (runId: string): number => {
      const place = rows.findIndex(({ run_id }) => run_id === runId);
      return place === -1 ? rows.length : place;
    };
    const within = rows.slice(after === undefined ? 0 : placeOf(after) + 1, before === undefined ? undefined : placeOf(before));
    const backwards = before !== undefined && after === undefined;
    return { rows: backwards ? within.slice(-limit) : within.slice(0, limit), total: rows.length };
  }

  /** The first attempts of the runs that an event caused itself, of all sources of the account. @param runKey `runKeyOf` the event */
  async findOfEvent(ownerId: UserId, runKey: string): Promise<{ run_id: string; source_id: SourceId }[]> {
    const { rows } = await this.database.query<{ run_id: string; source_id: SourceId }>({
      name: 'runs-of-event',
      // `runIdOf` of each source: no run names its event. Each is looked up by its index, whatever the planner assumes about the size of the tables
      text: `SELECT run.id AS run_id, source_id
             FROM deployment CROSS JOIN LATERAL (
               SELECT 'event-' || left(encode(sha256($2 || convert_to(source_id, 'UTF8')), 'hex'), 40) AS id
             ) AS run
             LEFT JOIN LATERAL (SELECT run_id FROM run_done WHERE run_id = run.id LIMIT 1) AS done ON true
             LEFT JOIN LATERAL (SELECT run_id FROM queued_run WHERE run_id = run.id LIMIT 1) AS queued ON true
             WHERE owner_id = $1 AND (done.run_id IS NOT NULL OR queued.run_id IS NOT NULL)
             ORDER BY source_id`,
      values: [ownerId, Buffer.from(runKey)],
    });
    return rows;
  }

  /** Those of an account's runs that have ended. `listed`: null if they have left the list. */
  async findEnded(ownerId: string, runIds: string[]): Promise<EndedRunRow[]> {
    const { rows } = await this.database.query<{ id: string } & Nullable<NonNullable<EndedRunRow['listed']>>>({
      name: 'runs-ended',
      text: `SELECT done.run_id AS id, status, started_at, duration_ms, error
             FROM run_done done LEFT JOIN (finished_run listed JOIN deployment d ON d.source_id = listed.source_id AND d.owner_id = $1)
               ON listed.run_id = done.run_id
             WHERE done.run_id = ANY ($2)`,
      values: [ownerId, runIds],
    });
    return rows.map(({ id, ...listed }) => ({ id, listed: listed.status === null ? null : (listed as EndedRunRow['listed']) }));
  }

  /**
   * Stores that runs have ended, with their records, and removes them from the queue; returns of which that was not stored before. One statement,
   * because every run needs it.
   */
  private async end(session: Session, runs: EndedRun[]): Promise<boolean[]> {
    // of several executions of a run the first, which is the one that is reported as stored
    const unique = Array.from(Map.groupBy(runs, ({ run }) => run.run_id).values(), ([first]) => first!);
    const records = unique.flatMap(({ run, records }) => records.map((record) => ({ run_id: run.run_id, record })));
    const column = <Value>(value: (entry: RunEntry) => Value) => unique.map(({ entry }) => entry && value(entry));
    const { rows } = await session.query<{ run_id: string }>({
      name: 'runs-end',
      // in the order of the ids: two replicas that end the same runs would otherwise wait for each other
      text: `WITH ended AS (
               SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::int[], $8::int[], $9::text[])
                 WITH ORDINALITY AS e (run_id, source_id, trigger, method, status, started_at, duration_ms, emitted, error, n)
             ), done AS (
               INSERT INTO run_done (run_id) SELECT run_id FROM ended ORDER BY run_id ON CONFLICT DO NOTHING RETURNING run_id
             ), listed AS (
               INSERT INTO finished_run (run_id, source_id, trigger, method, status, started_at, duration_ms, emitted, error)
               SELECT run_id, source_id, trigger, method, status, started_at, duration_ms, emitted, error
               FROM ended JOIN done USING (run_id) WHERE status IS NOT NULL ORDER BY n
             ), sent AS (
               ${addedToOutbox(`${outboxRows(11, 'run_id')} JOIN done USING (run_id)`)}
             ), dequeued AS (
               ${removedFromQueue('$1')}
             )
             SELECT run_id, ${WAKE_RELAY} FROM done`,
      values: [
        unique.map(({ run }) => run.run_id),
        unique.map(({ run }) => run.source_id),
        column((entry) => entry.trigger),
        column((entry) => entry.method),
        column((entry) => entry.status),
        column((entry) => entry.started_at),
        column((entry) => entry.duration_ms),
        column((entry) => entry.emitted),
        column((entry) => entry.error),
        records.map(({ run_id }) => run_id),
        ...outboxValues(records.map(({ record }) => record)),
      ],
    });
    const left = new Set(rows.map(({ run_id }) => run_id));
    return runs.map(({ run }) => left.delete(run.run_id));
  }

  /** Deletes the runs that are not listed any more. What fails is repeated with a later run. */
  private async trim(sourceId: string): Promise<void> {
    await this.database
      .query(
        `DELETE FROM finished_run WHERE source_id = $1 AND position <= (
           SELECT position FROM finished_run WHERE source_id = $1 ORDER BY position DESC OFFSET ${LISTED} LIMIT 1)`,
        [sourceId],
      )
      .catch(() => this.trims.again(sourceId));
  }

  /** Deletes runs of sources that were deleted while the run was in progress. */
  async deleteOfDeleted(): Promise<void> {
    await this.database.query(deletionOfDeletedSources('finished_run'));
  }

  /** Deletes the ids of runs that cannot be repeated, because Kafka has deleted their records. */
  async deleteDone(olderThanDays: number): Promise<void> {
    await deleteOlder(this.database, 'run_done', 'finished_at', new Date(Date.now() - olderThanDays * DAY_MS));
  }
}

/** The number of runs of a source after which its list is trimmed. */
const EVERY = 50;
const SOURCES = 10_000;

/** Counts the runs of sources, so that their lists are trimmed periodically and not after each run. */
class TrimCounter {
  private readonly since = new LRUCache<string, number>({ max: SOURCES });

  isDue(sourceId: string): boolean {
    // an unknown source is due at once, because a restart loses the counts
    const count = (this.since.get(sourceId) ?? EVERY) + 1;
    this.since.set(sourceId, count > EVERY ? 1 : count);
    return count > EVERY;
  }

  /** The trim failed. */
  again(sourceId: string): void {
    this.since.delete(sourceId);
  }
}
