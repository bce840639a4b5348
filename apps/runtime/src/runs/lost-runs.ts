import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { executeRun } from '#contracts';
import { Consumers } from '#messaging';
import { LOG, type Log } from '#observability';
import { afterLossOf } from '#service';
import { RetriedRunsRepository } from '../retries/retried-runs.repository.js';
import { TimersRepository } from '../timers/timers.repository.js';

/** When Kafka has lost requests for runs, those of timers and of further attempts are repeated: their runs would otherwise be missed for an hour. */
@Injectable()
export class LostRuns implements OnModuleInit, OnApplicationShutdown {
  private stop: () => void = () => {};

  constructor(
    private readonly consumers: Consumers,
    private readonly timers: TimersRepository,
    private readonly retried: RetriedRunsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    this.stop = afterLossOf(executeRun.topic, { consumers: this.consumers, log: this.log }, async () => ({
      timers: await this.timers.repeatLost(),
      attempts: await this.retried.repeatLost(),
    }));
  }

  onApplicationShutdown(): void {
    this.stop();
  }
}
