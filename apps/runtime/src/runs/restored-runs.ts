import { Inject, Injectable } from '@nestjs/common';
import type { RunChanges } from '#contracts';
import { isOfData } from '#database';
import type { Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { DeployedSources } from '../deployments/deployed-sources.js';
import { changesOf } from './run-changes.js';
import { NO_EFFECTS } from './run-effects.js';
import { RunLanes } from './run-lanes.js';
import { RunsRepository } from './runs.repository.js';
import { SourceLocks } from './source-locks.js';

/**
 * Stores again what runs have changed that a restored database does not know, and that cannot be repeated: their components have responded to their requests
 * themselves. As long as the database knows them, which is always without a restore, their records need no work.
 */
@Injectable()
export class RestoredRuns {
  constructor(
    private readonly runs: RunsRepository,
    private readonly sources: DeployedSources,
    private readonly lanes: RunLanes,
    private readonly locks: SourceLocks,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Returns the tasks of a batch, in turn with the runs of each source. */
  async plan(changes: RunChanges[]): Promise<Task[][]> {
    const areDone = await Promise.all(changes.map(({ run_id }) => this.runs.isDone(run_id)));
    return changes.map((each, index) => (areDone[index] ? [] : [this.task(each)]));
  }

  private task(changes: RunChanges): Task {
    return { ...this.lanes.laneOf(changes, 1), run: () => this.restore(changes) };
  }

  private async restore(changes: RunChanges): Promise<void> {
    const { run_id, owner_id, source_id, part } = changes;
    // the catalog may have been restored, too
    if (!(await this.sources.find(source_id))) return;
    const stored = { run_id: part === undefined ? run_id : `${run_id}/${part}`, owner_id, source_id, trigger: 'http' } as const;
    const effects = { ...NO_EFFECTS, ...changesOf(changes) };
    try {
      await this.locks.alone(source_id, () => this.runs.finish(stored, effects));
    } catch (error) {
      // a repetition would not help, and later runs of the source wait
      if (!isOfData(error)) throw error;
      return this.log.error({ run_id, source_id, err: error }, 'run.not-restored');
    }
    if (part === undefined) this.log.info({ run_id, source_id }, 'run.restored');
  }
}
