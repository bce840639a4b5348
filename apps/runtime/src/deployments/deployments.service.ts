import { Injectable } from '@nestjs/common';
import type { SourceId } from '#contracts';
import { together, type Transaction } from '#database';
import { type EmitterChange, EmitterChangeHandler } from '#emitters';
import { SecretBox } from '#secrets';
import { DELETE_STATS } from '#stats';
import { QueueSignal } from '../queue/queue-signal.js';
import { DELETE_RUNS_OF_SOURCE, QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import { takeTurns } from '../source-state/source-turns.js';
import { firstTick, phaseOf } from '../timers/next-tick.js';
import { TimersRepository } from '../timers/timers.repository.js';
import { DELETE_WAITING_EMITS } from '../waiting/waiting-emits.repository.js';
import type { DeploymentRow } from './deployment.entity.js';
import { deployedState, DeploymentsRepository } from './deployments.repository.js';
import { type DeployedState, hookRuns, isOutdated } from './hook-runs.js';
import { comparedProps } from './opened-props.js';

/** SQL that deletes what waits for a deleted source ($1), and its counts. */
const DELETE_WAITING = together(DELETE_RUNS_OF_SOURCE, DELETE_WAITING_EMITS, DELETE_STATS);

/** A change of a source that remains. */
interface Applied {
  before: DeployedState | undefined;
  after: DeployedState;
}

/** Deploys, changes and deletes sources according to the catalog's facts. The row, its timers and the runs of its hooks change in one transaction. */
@Injectable()
export class DeploymentsService extends EmitterChangeHandler {
  override readonly needsConfigured = true;

  constructor(
    private readonly deployments: DeploymentsRepository,
    private readonly timers: TimersRepository,
    private readonly queue: QueuedRunsRepository,
    private readonly signal: QueueSignal,
    private readonly retried: RetriedRunsRepository,
    private readonly state: SourceStateRepository,
    private readonly box: SecretBox,
    private readonly sandbox: Sandbox,
  ) {
    super();
  }

  private readonly propsOf = ({ source_id, deployment }: DeployedState) => comparedProps(this.box, source_id, deployment);

  async emittersChanged(transaction: Transaction, changes: EmitterChange[]): Promise<void> {
    const known = changes.filter(({ state, first }) => state.kind === 'source' && !first).map(({ state }) => state.emitter_id);
    const deployed = await this.deployments.lock(transaction, known);
    for (const { state } of changes) await this.removeWaiting(transaction, state);
    // behind what takes long: the runs of these sources wait until the transaction ends, and with them those that are stored together with these
    await takeTurns(transaction, known);
    const applied: Applied[] = [];
    for (const change of changes) {
      const one = await this.prepare(transaction, change, deployed.get(change.state.emitter_id));
      if (one) applied.push(one);
    }
    await this.deployments.put(
      transaction,
      applied.map(({ after: { deployment, ...state } }) => ({ ...deployment, ...state })),
    );
    for (const each of applied) await this.finish(transaction, each);
  }

  /** Deletes what waits for a source that is deleted or inactive: it may be gigabytes. */
  private async removeWaiting(transaction: Transaction, { kind, emitter_id, deleted, active }: EmitterChange['state']): Promise<void> {
    if (kind !== 'source') return;
    const sourceId = emitter_id as SourceId;
    if (deleted || !active) await this.retried.deleteUnrequested(transaction, sourceId);
    if (deleted) {
      await transaction.query({ name: 'source-delete-waiting', text: DELETE_WAITING, values: [sourceId] });
    } else if (!active) await this.queue.removeOfInactive(transaction, sourceId);
  }

  /** Undefined if there is nothing to deploy. */
  private async prepare(
    transaction: Transaction,
    { state: { deployment, ...state } }: EmitterChange,
    row: DeploymentRow | undefined,
  ): Promise<Applied | undefined> {
    if (state.kind !== 'source') return undefined;
    const sourceId = state.emitter_id as SourceId;
    const before = row && deployedState(row);
    if (state.deleted || !state.active) await this.retried.deleteOfSource(transaction, sourceId);
    if (state.deleted) {
      await this.deployments.remove(transaction, sourceId);
      this.forgetOutdated(transaction, before, undefined);
      const runs = await this.runHooks(transaction, before, undefined);
      // otherwise the last hook still reads the state, and deletes it at its end
      if (runs === 0) await this.state.delete(transaction, sourceId);
      return undefined;
    }
    if (!deployment) return undefined;
    const after: DeployedState = {
      source_id: sourceId,
      owner_id: state.owner_id,
      active: state.active,
      suspended: state.suspended,
      version: state.version,
      deployment,
    };
    return { before, after };
  }

  /** Sets the timers of a deployed source, and queues the runs of its hooks. */
  private async finish(transaction: Transaction, { before, after }: Applied): Promise<void> {
    const { source_id: sourceId, active, deployment } = after;
    const schedules = active ? deployment.schedules : {};
    if ([schedules, before?.deployment.schedules ?? {}].some((each) => Object.keys(each).length > 0))
      await this.timers.put(transaction, after, schedules, (prop, schedule, now) => firstTick(schedule, phaseOf(sourceId, prop), now));
    this.forgetOutdated(transaction, before, after);
    await this.runHooks(transaction, before, after);
  }

  private forgetOutdated(transaction: Transaction, before: DeployedState | undefined, after: DeployedState | undefined): void {
    if (!before || !isOutdated(before, after, this.propsOf)) return;
    transaction.afterCommit(async () => this.sandbox.forget(before.owner_id, before.source_id));
  }

  /** Queues the runs of the hooks: runs that are requested after the change was applied wait behind them in the table. Returns how many there are. */
  private async runHooks(transaction: Transaction, before: DeployedState | undefined, after: DeployedState | undefined): Promise<number> {
    const runs = hookRuns(before, after, this.propsOf);
    const [first] = runs;
    if (!first) return 0;
    await this.queue.add(runs, { session: transaction });
    transaction.afterCommit(() => this.signal.runsWait(first.owner_id));
    return runs.length;
  }
}
