import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { executeRun, type RunRequest } from '#contracts';
import { HearsBatch, type Task } from '#messaging';
import { RuntimeConfig } from '../runtime.config.js';
import { RunLanes } from './run-lanes.js';
import { RunsService } from './runs.service.js';

/** Runs of one account at a time. */
const PER_ACCOUNT = 8;
/** Runs that wait for each one under way. */
const WAITING = 20;

/** Executes due runs in lanes per source: one run of a source at a time, in the order in which they became due. */
@Controller()
export class RunsController {
  constructor(
    private readonly runs: RunsService,
    private readonly lanes: RunLanes,
  ) {}

  @HearsBatch(executeRun, 'runs', () => {
    const { concurrency } = RuntimeConfig.read();
    return { concurrency, groupConcurrency: PER_ACCOUNT, maxOutstanding: concurrency * WAITING };
  })
  plan(@Payload() due: RunRequest[]): Task[][] {
    return due.map((run) => [{ ...this.lanes.laneOf(run), run: async () => void (await this.runs.execute(run)) }]);
  }
}
