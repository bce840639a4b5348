import { Inject, Injectable } from '@nestjs/common';
import { type RunRequest, Unavailable } from '#contracts';
import { LOG, type Log } from '#observability';
import type { AccountRecord } from '#outbox';
import { Stats } from '#stats';
import { AccountPace, RUN_UNITS } from '#fairness';
import { Quotas } from '../quotas/quotas.js';
import { type HttpReply, isInterrupted, type RunOutcome, type RunStatus } from '../sandbox/sandbox.js';
import { isLarge, type StateBefore } from './run-cost.js';
import { KILLS_IN_ROW } from '../deployments/deployments.repository.js';
import { RunResults, type StoredSource } from './run-results.js';
import type { BeforeWrite } from './runs.repository.js';
import { errorLine, withoutCode } from './run-effects.js';
import { isMissed, overQuota, sourceInactive } from '../run-events/error-reports.js';
import type { DueRun } from '../run-events/run-events.js';
import { keepsOrder, respondsWhenStored, type RunSource, RunSources, type SourceWithoutCode } from './run-sources.js';
import { requestedEvent } from '../timers/next-tick.js';
import { SandboxRuns } from './sandbox-runs.js';
import { type KeepLock, SourceLocks } from './source-locks.js';

/** Called while a run is carried out. */
export interface RunWatch {
  onRespond?(reply: HttpReply): void;
  /** The sandbox is done with it, and its outcome is being stored. Not called for a large one: until it is stored, it occupies memory. */
  onOutcome?(): void;
  /** Whether nobody waits for the response any more: the run does not begin, because the client may have repeated its request. */
  hasLeft?(): boolean;
}

/**
 * Carries out a run that is due:
 *
 *   the source and its code ─► quota ─► the account's pace ─► its turn ─► the sandbox ─► outcome stored in one transaction ─► counted
 */
@Injectable()
export class RunsService {
  constructor(
    private readonly sources: RunSources,
    private readonly quotas: Quotas,
    private readonly pace: AccountPace,
    private readonly locks: SourceLocks,
    private readonly sandbox: SandboxRuns,
    private readonly results: RunResults,
    private readonly stats: Stats,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Throws only failures that are transient: the run is then repeated. Returns how the run ended; null if it was not executed. */
  async execute(request: RunRequest, watch: RunWatch = {}): Promise<RunStatus | null> {
    if (watch.hasLeft?.()) return this.abandon(request);
    const [source, isDone] = await Promise.all([this.sources.find(request), this.results.isDone(request)]);
    if (typeof source === 'object' && source.component && source.killsInRow >= KILLS_IN_ROW) {
      // the run that should have switched it off was cut off
      await this.results.switchOff(source.state);
      throw new Unavailable('the source is being switched off');
    }
    if (isDone) {
      await this.results.repeated(request);
      return null;
    }
    if (!source) return this.skip(request, 'the source does not exist', { isListed: false });
    if (source === 'inactive') return this.skipOfInactive(request, watch);
    if (source.component === null) return this.failWithoutCode(request, source);
    const { state, description } = source;
    if (request.hook && !description.hooks.includes(request.hook.method)) {
      await this.results.storeMissingHook(request);
      return null;
    }
    const run = dueRun(request, source);
    // hooks set up and clean up: they run over quota, too
    const mustRun = run.hook !== undefined || wasAdmitted(run, watch);
    if (!mustRun && !(await this.quotas.allow(state.owner_id))) {
      const isFirst = await this.quotas.notify(state.source_id, overQuota(run, state.version));
      // a source with a timer keeps its last runs: the ticks of an hour would displace them
      return this.skip(run, 'the account is over its quota', { isListed: isFirst || isMissed(run) });
    }
    await this.pace.runTurn(state.owner_id, RUN_UNITS);
    const carryOut = (keepLock: KeepLock) => this.carryOut(run, source, watch, keepLock);
    return keepsOrder(description) ? this.locks.alone(state.source_id, carryOut) : carryOut(async () => {});
  }

  private async carryOut(
    run: DueRun,
    source: RunSource,
    { onRespond, onOutcome, hasLeft }: RunWatch,
    keepLock: KeepLock,
  ): Promise<RunStatus | null> {
    if (hasLeft?.()) return this.abandon(run);
    const before = await this.results.before(run, source);
    if (!before) return null;
    let held: HttpReply | undefined;
    const hold = (reply: HttpReply) => void (held = reply);
    const outcome = await this.sandbox.execute(run, source, {
      db: before.db,
      onRespond: respondsWhenStored(source.description) ? hold : onRespond,
    });
    const wasInterrupted = isInterrupted(outcome);
    // another process repeats it; nobody repeats a run that responds to a request itself, so that is stored as it ended
    if (wasInterrupted && !onRespond) throw new Unavailable('the runtime was stopped while the code ran');
    const ready = () => keepLock(() => this.results.check(run, source, before));
    const respondsItself = onRespond !== undefined;
    await this.store(run, source, outcome, before, { onOutcome, ready, hasResponded: outcome.responded && !held, respondsItself });
    if (held) onRespond?.(held);
    if (!wasInterrupted) await this.results.countKill(run, source, outcome.status);
    return outcome.status;
  }

  /** The run would fail again. */
  private async failWithoutCode(request: RunRequest, { state }: SourceWithoutCode): Promise<RunStatus> {
    await this.pace.runTurn(state.owner_id, RUN_UNITS);
    await this.store(dueRun(request, { state }), { state, description: { dedupe: null } }, withoutCode, { db: {}, dedupe: {} });
    return withoutCode.status;
  }

  private async store(
    run: DueRun,
    source: StoredSource,
    outcome: RunOutcome,
    before: StateBefore,
    { onOutcome, ...storing }: Pick<RunWatch, 'onOutcome'> & { ready?: BeforeWrite; hasResponded?: boolean; respondsItself?: boolean } = {},
  ): Promise<void> {
    const effects = await this.results.effects(run, source, outcome, before);
    if (!isLarge(effects)) onOutcome?.();
    const written = await this.results.store(run, source, outcome, effects, storing);
    if (written) this.stats.countEnded(run.source_id, { durationMs: outcome.wallMs, failed: outcome.status !== 'ok' });
    this.logFinished(run, outcome, written);
  }

  private logFinished(run: DueRun, { status, error, emits, wallMs }: RunOutcome, written: boolean): void {
    const { run_id, source_id, trigger } = run;
    // successful runs of timers would hide everything else
    const level = trigger === 'timer' && error === null ? 'debug' : 'info';
    this.log[level](
      {
        ...{ run_id, source_id, trigger, method: run.hook?.method ?? 'run', status },
        ...{ emits: emits.length, duration_ms: Math.ceil(wallMs), lag_ms: Date.now() - run.due_at_ms, written },
        ...(error && errorLine(error)),
      },
      'run.finished',
    );
  }

  /** A request that waits for the response of the component gets another one. The other runs had been accepted. */
  private skipOfInactive(run: RunRequest, { onRespond }: RunWatch): Promise<null> {
    return this.skip(run, 'the source is not active', { reports: onRespond || !isMissed(run) ? [] : [sourceInactive(run)] });
  }

  private abandon({ run_id, source_id }: RunRequest): null {
    this.log.debug({ run_id, source_id }, 'run.abandoned');
    return null;
  }

  private async skip(run: RunRequest, reason: string, { isListed = true, reports = [] as AccountRecord[] } = {}): Promise<null> {
    const { run_id, source_id } = run;
    await this.results.skip(run, reason, { isListed, reports });
    this.log.info({ run_id, source_id, reason }, 'run.skipped');
    return null;
  }
}

const dueRun = (request: RunRequest, { state }: Pick<RunSource, 'state'>): DueRun => ({
  ...request,
  event: request.event ?? (request.hook ? 'null' : requestedEvent(Object.values(state.deployment.schedules)[0])),
});

/** Whether the quota was checked when the run was accepted: its sender relies on it. A request that waits for the response of the component is refused instead. */
const wasAdmitted = ({ trigger }: DueRun, { onRespond }: RunWatch): boolean => trigger === 'manual' || (trigger === 'http' && !onRespond);
