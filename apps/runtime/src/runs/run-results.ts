import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { type RunRequest, runsAtATime, switchOffSource, Unavailable } from '#contracts';
import { isOfData, isTransient } from '#database';
import { AccountPace, BYTES_PER_UNIT, MS_PER_UNIT } from '#fairness';
import { Messages, sizeOf } from '#messaging';
import { LOG, type Log } from '#observability';
import type { AccountRecord } from '#outbox';
import { DeploymentsRepository, KILLS_IN_ROW } from '../deployments/deployments.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { Quotas } from '../quotas/quotas.js';
import { type ComponentDescription, KILLED, type RunOutcome, type RunStatus } from '../sandbox/sandbox.js';
import type { DedupeState } from '../source-state/dedupe.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { recordsOfChanges } from './run-changes.js';
import { additionalUnits, bytesRead, type StateBefore } from './run-cost.js';
import { NO_EFFECTS, notKept, type RunEffects, runEffects, skippedEntry } from './run-effects.js';
import { switchedOff } from '../run-events/error-reports.js';
import type { DueRun } from '../run-events/run-events.js';
import { DB_PROP, keepsOrder, type RunSource } from './run-sources.js';
import { type BeforeWrite, RunsRepository } from './runs.repository.js';

/** The last pause before another attempt to write is this long, and all of them together twice that. */
const LONGEST_PAUSE_MS = 16_000;

const KILLS = `${KILLS_IN_ROW} consecutive runs ended their process`;

/** The part of a source that the outcome of a run needs. */
export interface StoredSource extends Pick<RunSource, 'state'> {
  description: Pick<ComponentDescription, 'dedupe' | 'retries'>;
}

/** A run has read another state than that which it would overwrite. */
class Outdated extends Unavailable {}

/** The stored state before a run, and the effects after it. */
@Injectable()
export class RunResults {
  constructor(
    private readonly runs: RunsRepository,
    private readonly state: SourceStateRepository,
    private readonly quotas: Quotas,
    private readonly deployments: DeploymentsRepository,
    private readonly messages: Messages,
    private readonly config: RuntimeConfig,
    private readonly pace: AccountPace,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Whether the run has already been executed. */
  isDone({ run_id }: RunRequest): Promise<boolean> {
    return this.runs.isDone(run_id);
  }

  /** For a run that has already been executed: its request came twice. Its timer may still wait for it. */
  async repeated({ trigger, source_id, run_id }: RunRequest): Promise<void> {
    if (trigger === 'timer') await this.runs.resumeTimer(source_id, run_id);
  }

  /** The state that the component reads; null if another replica has executed the run while this one waited for its turn. */
  async before(run: DueRun, { state, description }: RunSource): Promise<StateBefore | null> {
    const hasDb = description.configurable_props.some(({ type }) => type === DB_PROP);
    const [isDone, db, dedupe] = await Promise.all([
      keepsOrder(description) && this.runs.isDone(run.run_id),
      hasDb ? this.state.loadDb(state.source_id) : {},
      description.dedupe === null ? {} : this.state.loadDedupe(state.source_id),
    ]);
    return isDone ? null : { db, dedupe };
  }

  /** For a run whose lock was lost. Throws Outdated if another run has changed the state that this one has read. */
  async check(run: DueRun, source: RunSource, before: StateBefore): Promise<void> {
    const now = await this.before(run, source);
    if (!now || isDeepStrictEqual(now, before)) return;
    this.log.warn({ run_id: run.run_id, source_id: run.source_id }, 'run.outdated');
    throw new Outdated('another run has changed the state of the source');
  }

  /** For a run that is not executed. It is listed unless its source does not exist. `reports`: for `$errors`. */
  skip(run: RunRequest, reason: string, { isListed, reports }: { isListed: boolean; reports: AccountRecord[] }): Promise<void> {
    return this.runs.leaveOut(run, isListed ? skippedEntry(run, reason, Date.now()) : null, reports);
  }

  /** The component does not define this hook. After the last hook of a source, its state is deleted anyway. */
  async storeMissingHook(run: RunRequest): Promise<void> {
    if (run.hook?.final) await this.runs.finish(run, { ...NO_EFFECTS, final: true });
  }

  /** The effects of the outcome. Counts the cost of the run. */
  async effects(run: DueRun, source: StoredSource, outcome: RunOutcome, before: StateBefore): Promise<RunEffects> {
    const { effects, ms } = await this.effectsOf(run, source, outcome, before.dedupe);
    const cost = { read: bytesRead(run, before), ms: outcome.mainMs + ms };
    this.pace.spendOn('run', run.owner_id, additionalUnits(outcome.status, effects, cost));
    return effects;
  }

  /**
   * Returns false if the outcome of this run is already stored. If the database refuses the data, an error event is stored instead. Throws Unavailable if the
   * state is outdated: the run is repeated, unless its component has responded already. Then all but the state is stored.
   *
   * @param respondsItself whether the request is not in Kafka: a restored database then gets the effects of the run from records, because nothing repeats it
   */
  async store(
    run: DueRun,
    source: StoredSource,
    outcome: RunOutcome,
    effects: RunEffects,
    { ready, hasResponded = false, respondsItself = false }: { ready?: BeforeWrite; hasResponded?: boolean; respondsItself?: boolean } = {},
  ): Promise<boolean> {
    const restorable = (stored: RunEffects) => (respondsItself ? this.withChanges(run, stored) : stored);
    try {
      return await this.write(run, await restorable(effects), ready);
    } catch (error) {
      if (error instanceof Outdated && hasResponded) return this.write(run, await restorable({ ...effects, db: {}, dedupe: null }));
      if (!isOfData(error)) throw error;
      this.log.error({ run_id: run.run_id, source_id: run.source_id, err: error }, 'run.not-kept');
      const { effects: report } = await this.effectsOf(run, { ...source, description: { dedupe: null } }, notKept(outcome), {});
      return this.write(run, report);
    }
  }

  /**
   * Switches a source off whose runs keep ending their processes. The report is stored with the count. If the source cannot be switched off now, that is
   * repeated before its next run, which can be this one: it throws Unavailable then.
   */
  async countKill(run: DueRun, { state, killsInRow, description }: RunSource, status: RunStatus): Promise<void> {
    if (!KILLED.includes(status)) {
      // other runs may have been counted while this one was in progress
      const mayBeCounted = killsInRow > 0 || (!run.hook && runsAtATime(description) > 1);
      return mayBeCounted ? this.deployments.resetKills(state.source_id) : undefined;
    }
    const before = run.hook ? KILLS_IN_ROW : killsInRow;
    const kills = await this.deployments.countKill(state, before, () =>
      switchedOff(run, state.version, `${KILLS}; the last one: ${status}`),
    );
    if (kills >= KILLS_IN_ROW) await this.switchOff(state);
  }

  /** For a source whose last runs have ended their processes. Nothing happens if its owner has changed it since then. */
  async switchOff({ source_id, owner_id, version }: RunSource['state']): Promise<void> {
    await this.messages.request(switchOffSource, { owner_id, id: source_id, version, reason: KILLS }, { account: owner_id });
  }

  /** Adds the records from which a restored database gets these effects. */
  private async withChanges(run: DueRun, effects: RunEffects): Promise<RunEffects> {
    const { value: changes, ms } = await inTurns(recordsOfChanges(run, effects));
    const bytes = changes.reduce((sum, record) => sum + sizeOf(record), 0);
    this.pace.spendOn('run', run.owner_id, bytes / BYTES_PER_UNIT + ms / MS_PER_UNIT);
    return { ...effects, records: [...effects.records, ...changes] };
  }

  private async effectsOf(
    run: DueRun,
    { state, description }: StoredSource,
    outcome: RunOutcome,
    before: DedupeState,
  ): Promise<{ effects: RunEffects; ms: number }> {
    const source = { sourceId: state.source_id, ownerId: state.owner_id, version: state.version };
    const options = { counted: this.quotas.counted, schedule: this.config.retrySchedule };
    const { value: effects, ms } = await inTurns(runEffects(run, source, description, outcome, before, options));
    return { effects, ms };
  }

  /** The component may have changed other systems: waits for a database that is down for a moment, rather than repeat the run. */
  private async write(run: DueRun, effects: RunEffects, ready?: BeforeWrite): Promise<boolean> {
    const changesState = effects.dedupe !== null || Object.keys(effects.db).length > 0;
    for (let pause = 100; ; pause *= 2) {
      try {
        return await this.runs.finish(run, effects, changesState ? ready : undefined);
      } catch (error) {
        if (!isTransient(error) || pause > LONGEST_PAUSE_MS) throw error;
        this.log.warn({ run_id: run.run_id, err: error }, 'run.not-written');
        await sleep(pause);
      }
    }
  }
}

/** Other work of the main thread has its turn between the slices. `ms`: without that work. */
async function inTurns<T>(slices: Generator<void, T>): Promise<{ value: T; ms: number }> {
  for (let ms = 0; ; await nextTurn()) {
    const begun = performance.now();
    const { done, value } = slices.next();
    ms += performance.now() - begun;
    if (done) return { value, ms };
  }
}
