import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { listFullInRouting, type RunRequest, type SourceId, type UserId } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Consumers, type Task } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { Rounds } from '#service';
import { FullAccounts, WaitingData } from '#waiting-data';
import { RunLanes, RUNS_GROUP } from './run-lanes.js';
import { RunsService } from './runs.service.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { QueueSignal } from '../queue/queue-signal.js';
import { type Conditions, NEXT_BYTES, type NextRuns, QueuedRunsRepository, type WaitingRun } from '../queue/queued-runs.repository.js';

/** Runs of an account that this replica holds in its lanes; the rest waits in the database. */
const READY_PER_ACCOUNT = 48;
/** Beyond these, only the first run of a source is taken, so that it does not wait behind further runs of others. */
const FURTHER_PER_ACCOUNT = 32;
/** With runs of fewer sources in lanes, the account might have more in progress. */
const SOURCES_PER_ACCOUNT = READY_PER_ACCOUNT - FURTHER_PER_ACCOUNT;
/** Hooks are taken besides. While more wait, the account's other runs wait for them. */
const HOOKS_PER_ACCOUNT = 256;
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

/** A run that is in a lane and has not ended. */
interface ReadyRun {
  run: RunRequest;
  /** It came from Kafka, and its record is not committed yet. */
  isDirect: boolean;
  /** It is in the database: taken from there, or written there before those that came after it. */
  isStored: boolean;
  /** Of `readyBytes`; 0 for direct ones. */
  bytes: number;
}

interface Account {
  /** By id, in their order. */
  ready: Map<string, ReadyRun>;
  /** With fewer runs than this left, the lanes are filled up from the database; 0: nothing waits there. */
  refillBelow: number;
  filling: Promise<void> | undefined;
  /** When this replica took or renewed the lease of the account, in ms of the process's clock. */
  leasedAt: number;
  /** The source of the run that was taken last. */
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
 * The order: hooks first, before other runs of their source that have not begun; then the first run of each source before the second of any, and so on.
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
    const ready = new Map(accounts.map((id) => [id, this.accounts.get(id)?.ready.size ?? 0]));
    const verdicts = due.map((run): 'drop' | 'wait' | 'run' => {
      if (!run.hook && inactive.has(run.source_id)) return 'drop';
      const before = ready.get(run.owner_id) ?? 0;
      if (waiting.has(run.owner_id) || before >= FURTHER_PER_ACCOUNT) {
        // later runs of the account wait behind it
        waiting.add(run.owner_id);
        return 'wait';
      }
      ready.set(run.owner_id, before + 1);
      return 'run';
    });
    const [toRun, toWait, toDrop] = (['run', 'wait', 'drop'] as const).map((each) => due.filter((_, index) => verdicts[index] === each));
    for (const run of toRun!) {
      const known = this.readyRun(run) ?? { isStored: false, bytes: 0 };
      this.account(run.owner_id).ready.set(run.run_id, { ...known, run, isDirect: true });
    }
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
  @Rounds(LOOK_EVERY_MS, 'queue.not-read')
  async look(): Promise<void> {
    const ready = [...this.accounts.values()].flatMap((account) => [...account.ready.values()]);
    const held = ready.flatMap(({ run, isDirect, isStored }) => (isDirect && isStored ? [run.run_id] : []));
    if (held.length > 0) await this.queue.hold(held, this.replica, LEASE_SECONDS);
    const accounts = await this.queue.accountsWaiting(this.replica);
    this.waiting = accounts.length;
    for (const { id, has_hooks } of accounts) {
      const known = this.accounts.get(id);
      if (known && hasStored(known)) await this.lease(id, known);
      if (!known || has_hooks || this.spaceOf(id, known).runs > 0) void this.fill(id);
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
    const before = accounts.flatMap((id) => [...this.account(id).ready.values()].flatMap(({ run, isStored }) => (isStored ? [] : [run])));
    // another replica may execute the account's queue: it must not execute those, nor later ones of their sources meanwhile
    await this.queue.add(runs, { held: { runs: before, replica: this.replica, seconds: LEASE_SECONDS } });
    const ended: RunRequest[] = [];
    for (const run of before) {
      const ready = this.readyRun(run);
      if (ready) ready.isStored = true;
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
        if (status === null && this.readyRun(run)?.isStored) await this.queue.remove(run.run_id);
        end();
      },
      drop: () => {
        if (this.readyRun(run)?.isStored) this.letGo([run]);
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
          ready: new Map(),
          refillBelow: 0,
          filling: undefined,
          leasedAt: -Infinity,
          after: '',
          isOutdated: false,
        }),
      );
    return account;
  }

  private readyRun({ owner_id, run_id }: RunRequest): ReadyRun | undefined {
    return this.accounts.get(owner_id)?.ready.get(run_id);
  }

  private leave(run: RunRequest): void {
    const { run_id, owner_id, source_id } = run;
    const account = this.account(owner_id);
    this.readyBytes -= account.ready.get(run_id)?.bytes ?? 0;
    account.ready.delete(run_id);
    if (account.ready.size < account.refillBelow || hasIdlePlaces(account, source_id)) void this.fill(owner_id);
    else if (account.ready.size === 0 && !account.filling) this.accounts.delete(owner_id);
  }

  /** Puts waiting runs of the account into its lanes; resolves when its hooks are in lanes that were added before the call. */
  private fill(id: UserId): Promise<void> {
    const account = this.account(id);
    account.isOutdated = true;
    account.filling ??= this.takeAll(id, account)
      .catch((error: Error) => this.log.warn({ account_id: id, err: error }, 'queue.not-read'))
      .finally(() => {
        account.filling = undefined;
        if (account.isOutdated) void this.fill(id);
        else if (account.ready.size === 0) this.accounts.delete(id);
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
    account.refillBelow = halfOf(account);
    if (this.emitsTooMuch(id) && !holdsLease(account) && (await this.next(id, account)).length === 0) {
      // as most accounts that are full: they need no lease
      account.refillBelow = 0;
      return;
    }
    if (performance.now() - account.leasedAt >= LEASE_KNOWN_MS && !(await this.lease(id, account))) return;
    let read = 0;
    for (const next of await this.next(id, account)) {
      const { request: run, bytes } = next;
      read += bytes;
      if (!run.hook) account.after = run.source_id;
      const known = account.ready.get(run.run_id);
      // a run that Kafka has delivered again is in its lane already
      if (known) known.isStored = true;
      else {
        account.ready.set(run.run_id, { run, isDirect: false, isStored: true, bytes });
        this.readyBytes += bytes;
        this.consumers.push(RUNS_GROUP, this.queuedTask(next));
      }
    }
    // further ones may have been left out
    if (read >= NEXT_BYTES) account.isOutdated = true;
    account.refillBelow = hasStored(account) ? halfOf(account) : 0;
    if (hasStored(account)) return;
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

  private next(id: UserId, account: Account): Promise<WaitingRun[]> {
    const taken = [...account.ready].flatMap(([runId, { isStored }]) => (isStored ? [runId] : []));
    return this.queue.next(id, taken, { replica: this.replica, after: account.after, ...this.spaceOf(id, account) });
  }

  /** How many runs of the account may be taken; only hooks while it emits too much. */
  private spaceOf(id: UserId, { ready }: Account): Pick<NextRuns, 'hooks' | 'runs' | 'further'> {
    const hooks = [...ready.values()].filter(({ run }) => run.hook).length;
    const runs = ready.size - hooks;
    const isFull = this.readyBytes >= READY_BYTES;
    const accounts = Math.max(this.waiting, this.accounts.size);
    const share = isFull ? 1 : Math.max(1, Math.floor((READY_PER_RUN * this.config.concurrency) / accounts));
    const most = this.emitsTooMuch(id) ? 0 : Math.min(READY_PER_ACCOUNT, share);
    return {
      hooks: Math.max(0, (isFull ? 1 : HOOKS_PER_ACCOUNT) - hooks),
      runs: Math.max(0, most - runs),
      further: Math.max(0, Math.ceil((most * FURTHER_PER_ACCOUNT) / READY_PER_ACCOUNT) - runs),
    };
  }
}

const halfOf = ({ ready }: Account): number => Math.max(1, Math.ceil(ready.size / 2));

const hasStored = ({ ready }: Account): boolean => [...ready.values()].some(({ isStored }) => isStored);

/** Whether this replica executes the account's waiting runs. */
const holdsLease = ({ leasedAt }: Account): boolean => leasedAt !== -Infinity;

/** Whether runs may wait although the account could have more in progress, after one of this source has ended. */
function hasIdlePlaces(account: Account, sourceId: SourceId): boolean {
  if (!holdsLease(account)) return false;
  const sources = new Set([...account.ready.values()].map(({ run }) => run.source_id));
  return !sources.has(sourceId) && sources.size < SOURCES_PER_ACCOUNT;
}
