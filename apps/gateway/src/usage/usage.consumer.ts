import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type RunFinished, runFinished } from '#contracts';
import { KAFKA, type KafkaClient, LaneConsumer, type LogRecord } from '#messaging';
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
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'gateway.usage',
      topics: [runFinished.topic],
      vital: false,
      concurrency: 1,
      maxOutstanding: 1000,
      plan: async (records) => {
        const runs = records.flatMap(readFinished);
        if (runs.length > 0) await this.usage.count(runs);
        return records.map(() => []);
      },
    });
  }

  onApplicationBootstrap(): void {
    // not awaited: after a crash the group waits for the dead member, and the API need not; a failure ends the process
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

/** None for what isn't a finished run: only the runtime writes here. */
function readFinished(record: LogRecord): RunFinished[] {
  const run = JSON.parse(record.value?.toString('utf8') ?? 'null') as RunFinished | null;
  return run && typeof run.run_id === 'string' && typeof run.owner_id === 'string' ? [run] : [];
}
