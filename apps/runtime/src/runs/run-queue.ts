import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LRUCache } from 'lru-cache';
import { listFullInRouting, type RunRequest, type SourceId, type UserId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Consumers, type Task } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { FullAccounts, WaitingData } from '#waiting-data';
import { RunLanes, RUNS_GROUP } from './run-lanes.js';
import { RunsService } from './runs.service.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { QueueSignal } from '../queue/queue-signal.js';
import { type Conditions, NEXT_BYTES, QueuedRunsRepository, TAKEN_PER_SOURCE, type WaitingRun } from '../queue/queued-runs.repository.js';

/** Runs of an account that this replica holds in its lanes; the rest waits in the database. */
const READY_PER_ACCOUNT = 32;
/** Runs of all accounts from the database that it holds in its lanes, per run in progress. With more accounts, each has one. This limits the memory. */
const READY_PER_RUN = 32;
/** Bytes of their requests. While they have more, each account has one. The same as for runs from Kafka: the process also needs memory for their outcomes. */
const READY_BYTES = 64 * 1024 * 1024;
const LEASE_SECONDS = 15;
/** A lease that was taken or renewed less than this time ago is not renewed for each look at the queue. */
const LEASE_KNOWN_MS = 5000;
/** How long the result of a look at an account's queue counts. */
const FULL_FOR_MS = 1000;
const LOOK_EVERY_MS = 3000;

const queued = counter('runs_queued_total', 'Runs that had to wait in the database because their account has reached its limit.');
const dropped = counter('runs_dropped_total', 'Runs of sources that were deleted or inactive when they came.');

/** The runs of one account that are in lanes and have not ended, by id, in their order. */
interface Account {
  /** Runs from Kafka, whose records are not committed yet. */
  direct: Map<string, RunRequest>;
  /** Runs of the database, and direct ones that were written there before those that came after them. With the bytes that each adds to `readyBytes`: 0 for direct ones. */
  stored: Map<string, number>;
  /** With fewer runs than this left, the lanes are filled up from the database; 0: nothing waits there. */
  refillBelow: number;
  filling: Promise<void> | undefined;
  /** When this replica took or renewed the lease of the account, in ms of the process's clock. */
  leasedAt: number;
  /** The source up to which the waiting runs were looked at. */
  after: string;
  /** Runs were added while it was being filled, perhaps too late to be seen. */
  isOutdated: boolean;
}

/**
 * Limits the runs in progress of one account, so that they do not delay those of others:
 *
 *   a run comes ──► its source is deleted or inactive? dropped; the second is reported
 *                 │ the account has runs waiting, or enough in its lanes? ──► table queued_run ──┐
 *                 ▼                                                                              │ in order, as its runs end
 *               lanes, 8 of an account at a time ◄───────────────────────────────────────────────┘
 *
 * A replica leases the accounts whose runs wait. A run stays in the table until it has ended: a crash repeats it, and its id makes its effects happen
 * once.
 *
 * While the events that an account has emitted make it full, its runs wait: they would emit more. Only its hooks run: they clean up.
 */
@Injectable()
export class RunQueue implements BeforeApplicationShutdown {
  private readonly replica = randomUUID();
  private readonly accounts = new Map<UserId, Account>();
  private readonly full = new LRUCache<UserId, boolean>({
    max: 10_000,
    ttl: FULL_FOR_MS,
    fetchMethod: async (id) => (await this.queue.count(id, this.config.maxQueuedRuns)) >= this.config.maxQueuedRuns,
  });
  private looking = false;
  /** The accounts with waiting runs at the last look. */
  private waiting = 0;
  /** Of the runs from the database in lanes. */
  private readyBytes = 0;

  constructor(
    private readonly queue: QueuedRunsRepository,
    private readonly retried: RetriedRunsRepository,
    private readonly directory: EmitterDirectory,
    private readonly runs: RunsService,
    private readonly lanes: RunLanes,
    private readonly consumers: Consumers,
    private readonly config: RuntimeConfig,
    private readonly own: WaitingData,
    private readonly fullAccounts: FullAccounts,
    signal: QueueSignal,
    @Inject(LOG) private readonly log: Log,
  ) {
    signal.listen((id) => this.fill(id));
  }

  /** Returns the tasks of a batch of due runs, in order. Runs that have to wait are in the database when it resolves. */
  async plan(due: RunRequest[]): Promise<Task[][]> {
    const sources = [...new Set(due.map(({ source_id }) => source_id))];
    const accounts = [...new Set(due.map(({ owner_id }) => owner_id))];
    const { inactive, waiting, atATime } = await this.conditions(sources, accounts);
    for (const id of accounts) if (this.emitsTooMuch(id)) waiting.add(id);
    const ready = new Map(accounts.map((id) => [id, readyOf(this.accounts.get(id))]));
    const verdicts = due.map((run): 'drop' | 'wait' | 'run' => {
      if (!run.hook && inactive.has(run.source_id)) return 'drop';
      const before = ready.get(run.owner_id) ?? 0;
      if (waiting.has(run.owner_id) || before >= READY_PER_ACCOUNT) {
        // later runs of the account wait behind it
        waiting.add(run.owner_id);
        return 'wait';
      }
      ready.set(run.owner_id, before + 1);
      return 'run';
    });
    const [toRun, toWait, toDrop] = (['run', 'wait', 'drop'] as const).map((each) => due.filter((_, index) => verdicts[index] === each));
    for (const run of toRun!) this.account(run.owner_id).direct.set(run.run_id, run);
    try {
      if (toWait!.length > 0) await this.keep(toWait!);
      await this.drop(toDrop!);
    } catch (error) {
      for (const run of toRun!) this.leave(run);
      throw error;
    }
    return due.map((run, index) => (verdicts[index] === 'run' ? [this.task(run, atATime[run.source_id] ?? 1)] : []));
  }

  private async conditions(sources: SourceId[], accounts: UserId[]): Promise<Conditions> {
    const found = await this.queue.conditions(sources, accounts);
    if (found.unknown.length === 0) return found;
    // the hooks of a new source run first. If the catalog does not respond in time, these runs look the source up again in their lanes
    await this.directory.find(found.unknown).catch(() => {});
    return this.queue.conditions(sources, accounts);
  }

  /** Renews the leases, and looks for waiting runs that no replica executes because theirs was killed. */
  @Interval(LOOK_EVERY_MS)
  async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      const inProgress = [...this.accounts.values()].flatMap(({ direct, stored }) => [...stored.keys()].filter((id) => direct.has(id)));
      if (inProgress.length > 0) await this.queue.hold(inProgress, this.replica, LEASE_SECONDS);
      const accounts = await this.queue.accountsWaiting(this.replica);
      this.waiting = accounts.length;
      for (const account of accounts) {
        const known = this.accounts.get(account);
        if (known?.stored.size) await this.lease(account, known);
        void this.fill(account);
      }
    } catch (error) {
      this.log.warn({ err: error }, 'queue.not-read');
    } finally {
      this.looking = false;
    }
  }

  /** Whether too many runs of the account wait for it to queue more by its endpoints. */
  async isFull(id: UserId): Promise<boolean> {
    return (await this.full.fetch(id)) ?? false;
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.accounts.values()].map(async ({ filling }) => filling));
    await this.queue.releaseAll(this.replica).catch((error: Error) => this.log.warn({ err: error }, 'queue.not-released'));
  }

  private async keep(runs: RunRequest[]): Promise<void> {
    const accounts = [...new Set(runs.map(({ owner_id }) => owner_id))];
    // after a crash, Kafka delivers them again; without these rows, they would then wait behind later runs
    const before = accounts.flatMap((id) => {
      const { direct, stored } = this.account(id);
      return [...direct.values()].filter(({ run_id }) => !stored.has(run_id));
    });
    // another replica may execute the account's queue: it must not execute those, nor later ones of their sources meanwhile
    await this.queue.add(runs, { held: { runs: before, replica: this.replica, seconds: LEASE_SECONDS } });
    const ended: RunRequest[] = [];
    for (const run of before) {
      const { direct, stored } = this.account(run.owner_id);
      if (direct.has(run.run_id)) stored.set(run.run_id, 0);
      else ended.push(run);
    }
    if (ended.length > 0) this.letGo(ended);
    queued.inc(runs.length);
    for (const account of accounts) void this.fill(account);
  }

  /** Runs empty the queue, so what waits there does not stop them. */
  private emitsTooMuch(id: UserId): boolean {
    return this.fullAccounts.isFullIn(listFullInRouting, id) || this.own.isFullOf('waiting_emit', id);
  }

  private async drop(runs: RunRequest[]): Promise<void> {
    if (runs.length === 0) return;
    await this.queue.reportDropped(runs);
    await this.retried.leaveOut(runs);
    dropped.inc(runs.length);
    const bySource: Partial<Record<SourceId, number>> = {};
    for (const { source_id } of runs) bySource[source_id] = (bySource[source_id] ?? 0) + 1;
    this.log.info({ runs: runs.length, by_source: bySource, reason: 'the source is deleted or not active' }, 'runs.dropped');
  }

  private task(run: RunRequest, atATime: number): Task {
    const end = () => this.leave(run);
    return {
      ...this.lanes.laneOf(run, atATime),
      run: async (release) => {
        const status = await this.runs.execute(run, { onOutcome: release });
        // one that was executed has left the queue in the transaction that stored its outcome
        if (status === null && this.account(run.owner_id).stored.has(run.run_id)) await this.queue.remove(run.run_id);
        end();
      },
      drop: () => {
        if (this.account(run.owner_id).stored.has(run.run_id)) this.letGo([run]);
        end();
      },
    };
  }

  /** Holds runs no longer that have ended, or that another process may execute now. They would be held for some seconds otherwise. */
  private letGo(runs: RunRequest[]): void {
    const ids = runs.map(({ run_id }) => run_id);
    this.queue.hold(ids, this.replica, 0).catch((error: Error) => this.log.warn({ err: error }, 'queue.not-released'));
  }

  /** A run that has not begun when the service stops stays in the table. */
  private queuedTask({ request: run, at_a_time }: WaitingRun): Task {
    const task = this.task(run, at_a_time);
    return { ...task, run: async (release) => (this.consumers.isStopping(RUNS_GROUP) ? this.leave(run) : task.run(release)) };
  }

  private account(id: UserId): Account {
    let account = this.accounts.get(id);
    if (!account)
      this.accounts.set(
        id,
        (account = {
          direct: new Map(),
          stored: new Map(),
          refillBelow: 0,
          filling: undefined,
          leasedAt: -Infinity,
          after: '',
          isOutdated: false,
        }),
      );
    return account;
  }

  private leave({ run_id, owner_id }: RunRequest): void {
    const account = this.account(owner_id);
    account.direct.delete(run_id);
    this.readyBytes -= account.stored.get(run_id) ?? 0;
    account.stored.delete(run_id);
    if (account.filling) return;
    if (readyOf(account) < account.refillBelow) void this.fill(owner_id);
    else if (readyOf(account) === 0) this.accounts.delete(owner_id);
  }

  /** Puts waiting runs of the account into its lanes; resolves when those are in lanes that were added before the call. */
  private fill(id: UserId): Promise<void> {
    const account = this.account(id);
    account.isOutdated = true;
    account.filling ??= this.takeAll(id, account)
      .catch((error: Error) => this.log.warn({ account_id: id, err: error }, 'queue.not-read'))
      .finally(() => {
        account.filling = undefined;
        if (account.isOutdated) void this.fill(id);
        else if (readyOf(account) === 0) this.accounts.delete(id);
      });
    return account.filling;
  }

  private async takeAll(id: UserId, account: Account): Promise<void> {
    while (account.isOutdated) {
      account.isOutdated = false;
      await this.takeNext(id, account);
    }
  }

  private async takeNext(id: UserId, account: Account): Promise<void> {
    if (this.consumers.isStopping(RUNS_GROUP)) return;
    // filling takes two statements, so it does not follow every run
    account.refillBelow = Math.max(1, Math.ceil(readyOf(account) / 2));
    const accounts = Math.max(this.waiting, this.accounts.size);
    const share = this.readyBytes < READY_BYTES ? Math.max(1, Math.floor((READY_PER_RUN * this.config.concurrency) / accounts)) : 1;
    const limit = Math.min(READY_PER_ACCOUNT, share) - readyOf(account);
    if (limit <= 0) return;
    const hooksOnly = this.emitsTooMuch(id);
    if (hooksOnly && account.leasedAt === -Infinity && (await this.nextHooks(id, account, limit)).length === 0) {
      // as most accounts that are full: they need no lease
      account.refillBelow = 0;
      return;
    }
    if (performance.now() - account.leasedAt >= LEASE_KNOWN_MS && !(await this.lease(id, account))) return;
    let read = 0;
    for (const run of await (hooksOnly ? this.nextHooks(id, account, limit) : this.next(id, account, limit))) {
      const { run_id } = run.request;
      read += run.bytes;
      // a run that Kafka has delivered again is in its lane already
      const isNew = !account.direct.has(run_id);
      account.stored.set(run_id, isNew ? run.bytes : 0);
      if (!isNew) continue;
      this.readyBytes += run.bytes;
      this.consumers.push(RUNS_GROUP, this.queuedTask(run));
    }
    // further ones may have been left out
    if (read >= NEXT_BYTES) account.isOutdated = true;
    account.refillBelow = account.stored.size === 0 ? 0 : Math.max(1, Math.ceil(readyOf(account) / 2));
    if (account.stored.size > 0) return;
    account.leasedAt = -Infinity;
    await this.queue.release(this.replica, [id]);
  }

  private async lease(id: UserId, account: Account): Promise<boolean> {
    // before the statement: this process may stand still until the response is read
    const now = performance.now();
    const isOurs = await this.queue.lease(id, this.replica, LEASE_SECONDS);
    account.leasedAt = isOurs ? now : -Infinity;
    return isOurs;
  }

  /** Those that may run while the account emits too much. */
  private nextHooks(id: UserId, account: Account, limit: number): Promise<WaitingRun[]> {
    return this.queue.nextHooks(id, [...account.stored.keys()], { replica: this.replica, limit });
  }

  /** The next runs, of sources behind those of the last call; behind the last source, it begins again. */
  private async next(id: UserId, account: Account, limit: number): Promise<WaitingRun[]> {
    for (;;) {
      const { after } = account;
      const next = await this.queue.next(id, [...account.stored.keys()], {
        replica: this.replica,
        perSource: TAKEN_PER_SOURCE,
        limit,
        after,
      });
      account.after = next.after;
      if (next.runs.length > 0 || after === '') return next.runs;
    }
  }
}

/** Runs in the account's lanes. */
function readyOf(account: Account | undefined): number {
  if (!account) return 0;
  const { direct, stored } = account;
  return direct.size + [...stored.keys()].filter((id) => !direct.has(id)).length;
}
