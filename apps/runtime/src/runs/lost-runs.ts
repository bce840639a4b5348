import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { executeRun } from '#contracts';
import { Consumers } from '#messaging';
import { LOG, type Log } from '#observability';
import { afterLossOf } from '#service';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { RunnerConfig } from '../sandbox/runner.config.js';
import { TimersRepository } from '../timers/timers.repository.js';

/** A run that waits for longer before it begins is most often in the table of queued runs. */
const WAITS_SECONDS = 30;

/**
 * When Kafka may have lost requests for runs, those of timers and of further attempts are repeated: their runs would otherwise be missed for an hour. Also at
 * each start: a loss is not recognised if the process was killed before it had stored its position. A run that is requested twice is one run, but its
 * code can be executed twice. So at a start, runs that may be in progress in another replica have the time to end.
 */
@Injectable()
export class LostRuns implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private stop: () => void = () => {};

  constructor(
    private readonly consumers: Consumers,
    private readonly timers: TimersRepository,
    private readonly retried: RetriedRunsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    this.stop = afterLossOf(executeRun.topic, { consumers: this.consumers, log: this.log }, () => this.repeat());
  }

  onApplicationBootstrap(): void {
    // after an hour they are repeated in any case
    this.repeat(RunnerConfig.read().runSeconds + WAITS_SECONDS).catch((error: Error) =>
      this.log.warn({ reason: error.message }, 'runs.not-repeated'),
    );
  }

  onApplicationShutdown(): void {
    this.stop();
  }

  /** @param seconds which have to pass after the request for a run */
  private async repeat(seconds = 0): Promise<{ timers: number; attempts: number }> {
    return { timers: await this.timers.repeatLost(seconds), attempts: await this.retried.repeatLost(seconds) };
  }
}
