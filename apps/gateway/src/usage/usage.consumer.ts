import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type RunFinished, runFinished } from '#contracts';
import { type BadRecord, KAFKA, type KafkaClient, LaneConsumer, payloadOf, Publisher, setAside, type Task } from '#messaging';
import { LOG, type Log } from '#observability';
import { IdempotencyRepository } from '../idempotency/idempotency.repository.js';
import { UsageRepository } from './usage.repository.js';

const FORGET_EVERY_MS = 3_600_000;

/** Counts what sources use: one statement for a batch of finished runs. */
@Injectable()
export class UsageConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;
  private forgetting: NodeJS.Timeout | undefined;

  constructor(
    @Inject(KAFKA) kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
    private readonly usage: UsageRepository,
    private readonly requests: IdempotencyRepository,
    publisher: Publisher,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'gateway.usage',
      topics: [runFinished.topic],
      vital: false,
      concurrency: 1,
      maxOutstanding: 1000,
      plan: async (records) => {
        const runs: RunFinished[] = [];
        const plans = await Promise.all(
          records.map((record) =>
            payloadOf(runFinished, record).then(
              (run): Task[] => (runs.push(run), []),
              (error: BadRecord) => [setAside(publisher, 'gateway', record, error.message)],
            ),
          ),
        );
        if (runs.length > 0) await this.usage.count(runs);
        return plans;
      },
    });
  }

  onApplicationBootstrap(): void {
    // not awaited: after a crash the group waits for the dead member, and the API need not; a failure to start ends the process
    void this.consumer.start();
    this.forgetting = setInterval(() => {
      Promise.all([this.usage.forgetCounted(), this.requests.forgetOld()]).catch((error: Error) =>
        this.log.warn({ err: error }, 'gateway.not-forgotten'),
      );
    }, FORGET_EVERY_MS);
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.forgetting);
    await this.consumer.stop();
  }
}
