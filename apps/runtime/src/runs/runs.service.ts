import { Inject, Injectable } from '@nestjs/common';
import { EVENTS_TOPIC, type EventToProduce, type RunRequested, runFinished } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { factRecord, type OutgoingRecord } from '#messaging';
import { LOG, type Log } from '#observability';
import { CodeCache } from '../components/code-cache.js';
import { type DeploymentRow, DeploymentsRepository } from '../deployments/deployments.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import type { ComponentDescription, HttpReply, RunOutcome, RunStatus, Sandbox } from '../sandbox/sandbox.js';
import { SANDBOX } from '../sandbox.provider.js';
import { dedupe } from './dedupe.js';
import { timerEvent } from '../timers/timer-event.js';
import { type DueRun, emitRecord, errorRecord, logRecord } from './run-events.js';
import { RunsRepository } from './runs.repository.js';

/** Carries out a run that is due: what the component did becomes rows and events in one transaction. */
@Injectable()
export class RunsService {
  constructor(
    private readonly runs: RunsRepository,
    private readonly deployments: DeploymentsRepository,
    private readonly directory: EmitterDirectory,
    private readonly codes: CodeCache,
    private readonly config: RuntimeConfig,
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Throws only what passes by itself: the run is then asked for again. Answers how the run ended; null when there was none. */
  async execute(request: RunRequested, onRespond?: (reply: HttpReply) => void): Promise<RunStatus | null> {
    if (await this.runs.isDone(request.run_id)) return null;
    const deployment = await this.deployment(request.source_id);
    if (!deployment?.active) {
      this.log.info({ run_id: request.run_id, source_id: request.source_id }, 'run.skipped');
      return null;
    }
    const run: DueRun = { ...request, event: request.event ?? eventOfTimer(deployment) };
    const { code, description } = await this.codes.get(deployment.code_hash);
    const outcome = await this.sandbox.run({
      runId: run.run_id,
      accountId: deployment.owner_id,
      sourceId: deployment.source_id,
      component: { hash: deployment.code_hash, code },
      method: 'run',
      props: { ...deployment.configured_props, ...deployment.schedules },
      endpoint: deployment.endpoint_key === null ? null : `${this.config.endpointsUrl}/${deployment.endpoint_key}`,
      db: await this.runs.loadDb(deployment.source_id),
      event: run.event,
      concurrency: description.concurrency,
      onRespond,
    });
    const written = await this.write(run, deployment, description, outcome);
    this.log.info(
      {
        run_id: run.run_id,
        source_id: run.source_id,
        trigger: run.trigger,
        status: outcome.status,
        emits: outcome.emits.length,
        duration_ms: Math.ceil(outcome.wallMs),
        lag_ms: Date.now() - run.due_at_ms,
        written,
      },
      'run.finished',
    );
    return outcome.status;
  }

  private async deployment(sourceId: string): Promise<DeploymentRow | undefined> {
    const known = await this.deployments.find(sourceId);
    if (known) return known;
    // the fact of its creation may be slower than its first run
    await this.directory.find([sourceId]);
    return this.deployments.find(sourceId);
  }

  private async write(
    run: DueRun,
    deployment: DeploymentRow,
    { dedupe: strategy }: ComponentDescription,
    outcome: RunOutcome,
  ): Promise<boolean> {
    const sourceId = deployment.source_id;
    const deploymentId = `d_${sourceId.slice('dc_'.length)}${deployment.version}`;
    const before = strategy === null ? {} : await this.runs.loadDedupe(sourceId);
    const { emits, state, refused } = dedupe(outcome.emits, strategy, before);
    const errors = [
      ...(outcome.error ? [outcome.error] : []),
      ...refused.map(({ reason }) => ({ name: 'DedupeError', code: 'DedupeError', message: reason, stack: `DedupeError: ${reason}` })),
    ];
    const events = [
      ...emits.map((emit) => emitRecord(sourceId, emit, (run.hops ?? 0) + 1)),
      ...outcome.logs.map((line) => logRecord(sourceId, line)),
      ...errors.map((error) => errorRecord(run, error, deploymentId)),
    ];
    const finished = factRecord(
      runFinished,
      {
        run_id: run.run_id,
        owner_id: deployment.owner_id,
        source_id: sourceId,
        status: outcome.status,
        compute_ms: Math.ceil(outcome.wallMs),
        finished_at_ms: Date.now(),
      },
      deployment.owner_id,
    );
    return this.runs.finish(run.run_id, sourceId, {
      db: outcome.db,
      dedupe: strategy === null ? null : state,
      records: [...events.map(toEvents), finished],
    });
  }
}

/** What a run gets that was asked for without an event. */
function eventOfTimer({ schedules }: DeploymentRow): string {
  const [schedule] = Object.values(schedules);
  return JSON.stringify(schedule ? timerEvent(schedule, new Date()) : {});
}

const toEvents = (event: EventToProduce): OutgoingRecord => ({ topic: EVENTS_TOPIC, ...event });
