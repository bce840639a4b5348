import { Inject, Injectable } from '@nestjs/common';
import { endpointUrl } from '#config';
import { EVENTS_TOPIC, type RunRequest, switchOffSource } from '#contracts';
import { isOfData, isTransient } from '#database';
import { EmitterDirectory } from '#emitters';
import { Messages, Publisher } from '#messaging';
import { LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { CodeCache } from '../components/code-cache.js';
import { deployedState, DeploymentsRepository } from '../deployments/deployments.repository.js';
import type { DeployedState } from '../deployments/hook-runs.js';
import { openedProps } from '../deployments/opened-props.js';
import { Quotas } from '../quotas/quotas.js';
import { RuntimeConfig } from '../runtime.config.js';
import { SANDBOX } from '../sandbox.provider.js';
import type { ComponentDescription, HttpReply, RunError, RunJob, RunOutcome, RunStatus, Sandbox } from '../sandbox/sandbox.js';
import { timerEvent } from '../timers/timer-event.js';
import { RunLanes } from './run-lanes.js';
import { notKept, type RunEffects, runEffects } from './run-effects.js';
import { deploymentIdOf, type DueRun, errorRecord } from './run-events.js';
import { skippedEntry } from './run-history.js';
import { RunsRepository } from './runs.repository.js';
import { SourceLocks } from './source-locks.js';

/** A source whose runs end their process so often in a row is switched off. */
const KILLS_IN_ROW = 3;
const DB_PROP = '$.service.db';
const DEACTIVATE_MS = 10_000;
/** The last wait for the database is this long, and all of them together twice that. */
const LONGEST_PAUSE_MS = 16_000;
const KILLED: RunStatus[] = ['memory', 'crashed', 'killed', 'timeout'];

/** `kills_in_row`: absent for a hook, which runs the source as it was. */
type RunningSource = DeployedState & { kills_in_row?: number };

/** Carries out a run that is due: what the component did becomes rows and events in one transaction. */
@Injectable()
export class RunsService {
  constructor(
    private readonly runs: RunsRepository,
    private readonly deployments: DeploymentsRepository,
    private readonly directory: EmitterDirectory,
    private readonly codes: CodeCache,
    private readonly quotas: Quotas,
    private readonly lanes: RunLanes,
    private readonly locks: SourceLocks,
    private readonly messages: Messages,
    private readonly publisher: Publisher,
    private readonly config: RuntimeConfig,
    private readonly box: SecretBox,
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Throws only what passes by itself: the run is then asked for again. Answers how the run ended; null when there was none. */
  async execute(request: RunRequest, onRespond?: (reply: HttpReply) => void): Promise<RunStatus | null> {
    const source: RunningSource | undefined = request.hook ? hookedSource(request) : await this.source(request.source_id);
    if (!source || (!source.active && !request.hook)) return this.skip(request, 'the source is not active', source);
    const { code, description } = await this.codes.get(source.deployment.code_hash);
    if (request.hook && !description.hooks.includes(request.hook.method)) return this.withoutHook(request);
    this.lanes.learn(source.source_id, runsAtATime(description));
    const run: DueRun = { ...request, event: request.event ?? (request.hook ? 'null' : eventOfTimer(source)) };
    // hooks set up and clear away: they run over quota too
    if (!run.hook && !(await this.quotas.allow(source.owner_id))) {
      await this.quotas.tell(run, source.source_id);
      return this.skip(run, 'the account is over its quota', source);
    }
    const carryOut = () => this.carryOut(run, source, code, description, onRespond);
    return keepsOrder(description) ? this.locks.alone(source.source_id, carryOut) : carryOut();
  }

  private async carryOut(
    run: DueRun,
    source: RunningSource,
    code: string,
    description: ComponentDescription,
    onRespond?: (reply: HttpReply) => void,
  ): Promise<RunStatus | null> {
    const hasDb = description.configurable_props.some(({ type }) => type === DB_PROP);
    const [isDone, db, before] = await Promise.all([
      this.runs.isDone(run.run_id),
      hasDb ? this.runs.loadDb(source.source_id) : {},
      description.dedupe === null ? {} : this.runs.loadDedupe(source.source_id),
    ]);
    if (isDone) return null;
    const outcome = await this.run(run, source, { code, db, concurrency: runsAtATime(description), onRespond });
    const effectsOf = (kept: RunOutcome, strategy: ComponentDescription['dedupe']) =>
      runEffects(
        run,
        { sourceId: source.source_id, ownerId: source.owner_id, version: source.version },
        { dedupe: strategy },
        kept,
        before,
        { counted: this.quotas.counted },
      );
    let written: boolean;
    try {
      written = await this.finish(run, effectsOf(outcome, description.dedupe));
    } catch (error) {
      if (!isOfData(error)) throw error;
      this.log.error({ run_id: run.run_id, source_id: source.source_id, err: error }, 'run.not-kept');
      written = await this.finish(run, effectsOf(notKept(outcome), null));
    }
    await this.countKill(source, outcome.status);
    this.log.info(
      {
        run_id: run.run_id,
        source_id: source.source_id,
        trigger: run.trigger,
        method: run.hook?.method ?? 'run',
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

  private async run(
    run: DueRun,
    { source_id, owner_id, version, deployment }: DeployedState,
    { code, ...given }: { code: string } & Pick<RunJob, 'db' | 'concurrency' | 'onRespond'>,
  ): Promise<RunOutcome> {
    const timers = Object.fromEntries(
      Object.entries(deployment.schedules).map(
        ([prop, schedule]) => [prop, { intervalSeconds: schedule.interval_seconds, ...schedule }] as const,
      ),
    );
    return this.sandbox.run({
      runId: run.run_id,
      accountId: owner_id,
      sourceId: source_id,
      component: { hash: deployment.code_hash, code },
      method: run.hook?.method ?? 'run',
      props: { ...openedProps(this.box, source_id, deployment), ...timers },
      endpoint: deployment.endpoint_key === null ? null : endpointUrl(this.config.endpointsUrl, deployment.endpoint_key),
      event: run.hook ? undefined : run.event,
      ...given,
      onLateError: (error) => void this.tellLate(run, version, error),
      wallMs: run.hook?.method === 'deactivate' ? DEACTIVATE_MS : undefined,
    });
  }

  /** The run has ended and is written: what it had left behind has an error event of its own. */
  private async tellLate(run: DueRun, version: number, error: RunError): Promise<void> {
    const event = errorRecord(run, error, deploymentIdOf(run.source_id, version));
    await this.publisher
      .send([{ topic: EVENTS_TOPIC, ...event }])
      .catch((err: Error) => this.log.warn({ run_id: run.run_id, source_id: run.source_id, err }, 'run.late-error-not-told'));
  }

  /** The component has done what it did, elsewhere too: a database that is away for a moment is waited for, rather than run it all again. */
  private async finish(run: DueRun, effects: RunEffects): Promise<boolean> {
    for (let pause = 100; ; pause *= 2) {
      try {
        return await this.runs.finish(run, effects);
      } catch (error) {
        if (!isTransient(error) || pause > LONGEST_PAUSE_MS) throw error;
        this.log.warn({ run_id: run.run_id, err: error }, 'run.not-written');
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  private async source(sourceId: string): Promise<RunningSource | undefined> {
    let row = await this.deployments.find(sourceId);
    if (!row) {
      // the fact of its creation may be slower than its first run
      await this.directory.find([sourceId]);
      row = await this.deployments.find(sourceId);
    }
    return row && { ...deployedState(row), kills_in_row: row.kills_in_row };
  }

  private async skip(run: RunRequest, reason: string, source: RunningSource | undefined): Promise<null> {
    const { run_id, source_id } = run;
    await this.runs.leaveOut(run, source ? skippedEntry(run, reason, Date.now()) : null);
    this.log.info({ run_id, source_id, reason }, 'run.skipped');
    return null;
  }

  private async withoutHook(run: RunRequest): Promise<null> {
    if (run.hook?.final) {
      await this.runs.finish(run, { db: {}, dedupe: null, waiting: [], records: [], usage: null, entry: null, final: true });
    }
    return null;
  }

  private async countKill(source: RunningSource, status: RunStatus): Promise<void> {
    const killed = KILLED.includes(status);
    if (!killed && !source.kills_in_row) return;
    const kills = await this.deployments.countKill(source.source_id, killed);
    if (!killed || kills < KILLS_IN_ROW) return;
    const command = {
      owner_id: source.owner_id,
      id: source.source_id,
      reason: `${kills} consecutive runs ended their process; the last one: ${status}`,
    };
    await this.messages.request(switchOffSource, command, { key: source.owner_id });
  }
}

const hookedSource = ({ source_id, owner_id, hook }: RunRequest): DeployedState | undefined =>
  hook && { source_id, owner_id, active: true, version: hook.version, deployment: hook.deployment };

/** With dedupe one after the other, whatever the component says: what one run emitted decides what the next one may. */
const runsAtATime = ({ dedupe, concurrency }: ComponentDescription): number => (dedupe === null ? concurrency : 1);

/** Whether what one run leaves behind matters to the next one, or a request may be run apart from the others. */
const keepsOrder = ({ dedupe, concurrency, configurable_props }: ComponentDescription): boolean =>
  dedupe !== null ||
  (concurrency <= 1 && configurable_props.some(({ type, customResponse }) => type === DB_PROP || customResponse === true));

/** What a run gets that was asked for without an event. */
function eventOfTimer({ deployment }: DeployedState): string {
  const [schedule] = Object.values(deployment.schedules);
  return JSON.stringify(schedule ? timerEvent(schedule, new Date()) : {});
}
