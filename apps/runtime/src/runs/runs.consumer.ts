import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type RunRequested, runRequested } from '#contracts';
import { type BadRecord, KAFKA, type KafkaClient, LaneConsumer, payloadOf, Publisher, setAside, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { QuotasRepository } from '../quotas/quotas.repository.js';
import { RuntimeConfig } from '../runtime.config.js';
import { RunLanes } from './run-lanes.js';
import { RunsRepository } from './runs.repository.js';
import { RunsService } from './runs.service.js';
import { SourceLocks } from './source-locks.js';

/** Runs of one account at a time. */
const PER_ACCOUNT = 8;
const FORGET_AFTER_DAYS = 8;
const FORGET_EVERY_MS = 3_600_000;

/** Due runs, in lanes per source: one run of a source at a time, in the order in which they became due. */
@Injectable()
export class RunsConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;
  private forgetting: NodeJS.Timeout | undefined;

  constructor(
    @Inject(KAFKA) kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    config: RuntimeConfig,
    private readonly runs: RunsService,
    private readonly lanes: RunLanes,
    private readonly locks: SourceLocks,
    private readonly repository: RunsRepository,
    private readonly quotas: QuotasRepository,
    publisher: Publisher,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'runtime.runs',
      topics: [runRequested.topic],
      concurrency: config.concurrency,
      groupConcurrency: PER_ACCOUNT,
      maxOutstanding: config.concurrency * 20,
      plan: (records) =>
        Promise.all(
          records.map((record) =>
            payloadOf(runRequested, record).then(
              (run): Task[] => [
                { lane: this.lanes.laneOf(run), group: run.owner_id, run: async () => void (await this.runs.execute(run)) },
              ],
              (error: BadRecord) => [setAside(publisher, 'runtime', record, error.message)],
            ),
          ),
        ),
    });
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.consumer.start();
    this.forgetting = setInterval(() => {
      Promise.all([this.repository.forgetDone(FORGET_AFTER_DAYS), this.quotas.forgetOld()]).catch((error: Error) =>
        this.log.warn({ err: error }, 'runs.not-forgotten'),
      );
    }, FORGET_EVERY_MS);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.forgetting);
    await this.consumer.stop();
    await this.locks.close();
  }

  /** A run that the same process asks for, in its source's lane, so that it's still one at a time. */
  runHere<T>(run: RunRequested, execute: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.consumer.intake.lanes.push(
        { lane: this.lanes.laneOf(run), group: run.owner_id, run: () => execute().then(resolve, reject) },
        () => {},
      );
    });
  }
}
