import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Log } from '#observability';
import { createConsumer } from './consumer-life.js';
import { Gathering } from './gathering.js';
import { LogIntake, type LogIntakeOptions } from './log-intake.js';

export interface LogConsumerOptions extends LogIntakeOptions {
  group: string;
  /** How long a record at the end of the log may wait for others, in ms. */
  gatherMs?: number;
}

/** Before decompression; at least one of the producer's batches comes in any case. Large fetches keep the event loop busy for long. */
const MAX_BYTES_PER_PARTITION = 256 * 1024;
/** How often a full partition is looked at and the group told that we live. */
const LOOK_MS = 500;

/** A consumer that keeps its position with its effects, so that each record counts once; the group's offsets aren't used. */
export class LogConsumer {
  private readonly consumer: Consumer;
  private readonly intake: LogIntake;
  private readonly gathering: Gathering;

  constructor(
    kafka: Kafka,
    log: Log,
    private readonly options: LogConsumerOptions,
  ) {
    this.consumer = createConsumer(kafka, options.group, log, { maxBytesPerPartition: MAX_BYTES_PER_PARTITION });
    const reread = (partition: number, offset: number) => this.consumer.seek({ topic: options.topic, partition, offset: String(offset) });
    this.intake = new LogIntake(log, options, reread);
    this.gathering = new Gathering(options.gatherMs ?? 0);
  }

  async start(): Promise<void> {
    this.consumer.on(
      this.consumer.events.GROUP_JOIN,
      ({ payload }) => void this.intake.assign(payload.memberAssignment[this.options.topic] ?? []),
    );
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: [this.options.topic], fromBeginning: true });
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (payload) => this.eachBatch(payload) });
  }

  async stop(): Promise<void> {
    await this.intake.stop();
    await this.consumer.disconnect();
  }

  private async eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }: EachBatchPayload): Promise<void> {
    while (!this.intake.hasRoom(batch.partition)) {
      if (!isRunning() || isStale()) return;
      await Promise.race([this.intake.room(), new Promise((resolve) => setTimeout(resolve, LOOK_MS))]);
      await heartbeat();
    }
    if (!isRunning() || isStale()) return;
    const { partition, messages } = batch;
    // which kafkajs knows and doesn't declare
    const fetchedOffset = Number((batch as { fetchedOffset?: string }).fetchedOffset);
    if (this.intake.take({ partition, messages, fetchedOffset, highWatermark: Number(batch.highWatermark) }))
      resolveOffset(batch.lastOffset());
    await heartbeat();
    await this.gathering.rest(batch);
  }
}
