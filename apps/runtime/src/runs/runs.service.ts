import { Inject, Injectable } from '@nestjs/common';
import type { RunRequest } from '#contracts';
import { LOG, type Log } from '#observability';
import { Quotas } from '../quotas/quotas.js';
import type { HttpReply, RunOutcome, RunStatus } from '../sandbox/sandbox.js';
import { KillCounter } from './kill-counter.js';
import type { DueRun } from './run-events.js';
import { RunLanes } from './run-lanes.js';
import { RunResults } from './run-results.js';
import { DB_PROP, eventOfTimer, keepsOrder, runsAtATime, type RunSource, RunSources } from './run-sources.js';
import { RunsRepository } from './runs.repository.js';
import { SandboxRuns } from './sandbox-runs.js';
import { SourceLocks } from './source-locks.js';

/**
 * Carries out a run that is due:
 *
 *   the source and its code ─► quota ─► its turn ─► the sandbox ─► outcome stored in one transaction ─► kills counted
 */
@Injectable()
export class RunsService {
  constructor(
    private readonly sources: RunSources,
    private readonly quotas: Quotas,
    private readonly lanes: RunLanes,
    private readonly locks: SourceLocks,
    private readonly runs: RunsRepository,
    private readonly sandbox: SandboxRuns,
    private readonly results: RunResults,
    private readonly kills: KillCounter,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Throws only failures that are transient: the run is then repeated. Returns how the run ended; null if it was not executed. */
  async execute(request: RunRequest, onRespond?: (reply: HttpReply) => void): Promise<RunStatus | null> {
    const source = await this.sources.find(request);
    if (!source) return this.skip(request, 'the source is not active');
    const { state, description } = source;
    if (request.hook && !description.hooks.includes(request.hook.method)) return this.withoutHook(request);
    this.lanes.learn(state.source_id, runsAtATime(description));
    const run: DueRun = { ...request, event: request.event ?? (request.hook ? 'null' : eventOfTimer(state)) };
    // hooks set up and clean up: they run over quota, too
    if (!run.hook && !(await this.quotas.allow(state.owner_id))) {
      await this.quotas.notify(run, state.source_id);
      return this.skip(run, 'over quota');
    }
    const carryOut = () => this.carryOut(run, source, onRespond);
    return keepsOrder(description) ? this.locks.alone(state.source_id, carryOut) : carryOut();
  }

  private async carryOut(run: DueRun, source: RunSource, onRespond?: (reply: HttpReply) => void): Promise<RunStatus | null> {
    const { state, description } = source;
    const hasDb = description.configurable_props.some(({ type }) => type === DB_PROP);
    const [isDone, db, before] = await Promise.all([
      this.runs.isDone(run.run_id),
      hasDb ? this.runs.loadDb(state.source_id) : {},
      description.dedupe === null ? {} : this.runs.loadDedupe(state.source_id),
    ]);
    if (isDone) return null;
    const outcome = await this.sandbox.execute(run, source, { db, onRespond });
    const written = await this.results.store(run, source, outcome, before);
    await this.kills.count(source, outcome.status);
    this.logFinished(run, outcome, written);
    return outcome.status;
  }

  private logFinished(run: DueRun, { status, emits, wallMs }: RunOutcome, written: boolean): void {
    const { run_id, source_id, trigger } = run;
    this.log.info(
      {
        ...{ run_id, source_id, trigger, method: run.hook?.method ?? 'run', status },
        ...{ emits: emits.length, duration_ms: Math.ceil(wallMs), lag_ms: Date.now() - run.due_at_ms, written },
      },
      'run.finished',
    );
  }

  private async skip(run: RunRequest, reason: string): Promise<null> {
    const { run_id, source_id } = run;
    await this.runs.leaveOut(run);
    this.log.info({ run_id, source_id, reason }, 'run.skipped');
    return null;
  }

  private async withoutHook(run: RunRequest): Promise<null> {
    if (run.hook?.final) {
      await this.runs.finish(run, { db: {}, dedupe: null, waiting: [], records: [], usage: null, final: true });
    }
    return null;
  }
}
