import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { executeRun, restoreRun, type RunChanges, type RunRequest } from '#contracts';
import { ConsumesBatch, type Task } from '#messaging';
import { RestoredRuns } from './restored-runs.js';
import { RunQueue } from './run-queue.js';
import { RuntimeConfig } from '../runtime.config.js';
import { RUNS_GROUP } from './run-lanes.js';

/** Runs of one account at a time, in each replica. One that is alone has half of all: runs that end together are stored together. */
export const RUNS_PER_ACCOUNT = 8;
/** Runs from Kafka in lanes, of all accounts, per run in progress. The queue limits each account; this limits the memory. */
const WAITING = 100;

/** Of both topics: what was stored for runs of a source is restored in turn with its other runs. */
const settings = () => {
  const { concurrency } = RuntimeConfig.read();
  return {
    concurrency,
    reserve: concurrency,
    groupConcurrency: RUNS_PER_ACCOUNT,
    loneGroupConcurrency: Math.max(RUNS_PER_ACCOUNT, Math.floor(concurrency / 2)),
    maxOutstanding: concurrency * WAITING,
  };
};

/** Executes due runs in lanes per source: one run of a source at a time, in the order in which they became due. */
@Controller()
export class RunsController {
  constructor(
    private readonly queue: RunQueue,
    private readonly restored: RestoredRuns,
  ) {}

  @ConsumesBatch(executeRun, RUNS_GROUP, settings)
  plan(@Payload() due: RunRequest[]): Promise<Task[][]> {
    return this.queue.plan(due);
  }

  @ConsumesBatch(restoreRun, RUNS_GROUP, settings)
  planRestored(@Payload() changes: RunChanges[]): Promise<Task[][]> {
    return this.restored.plan(changes);
  }
}
