import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Log } from '#observability';
import { createConsumer } from './consumer-life.js';
import { LogRecord } from './log-record.js';
import type { Position } from './watermark.js';

/** Thrown by `handle` when somebody else has moved the partition's position: it's read again from where it stands now. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

export interface LogConsumerOptions {
  group: string;
  topic: string;
  maxBytesPerPartition?: number;
  /** Where each of these partitions is to be taken up; a partition without a position is read from its beginning. */
  positions(partitions: number[]): Promise<Map<number, Position>>;
  /**
   * Takes a batch of a partition, in the order of the log, and keeps `after` in the same transaction as its effects,
   * on the condition that the kept position still is `before`; otherwise throws Fenced. Any other error: again, later.
   */
  handle(partition: number, records: LogRecord[], before: Position, after: Position): Promise<void>;
}

/** A consumer that keeps its position with its effects, so that each record counts once; the group's offsets aren't used. */
export class LogConsumer {
  private readonly consumer: Consumer;
  private readonly positions = new Map<number, Position>();
  private assigned: Promise<void> = Promise.resolve();
  private stopping = false;

  constructor(
    kafka: Kafka,
    private readonly log: Log,
    private readonly options: LogConsumerOptions,
  ) {
    this.consumer = createConsumer(kafka, options.group, log, { maxBytesPerPartition: options.maxBytesPerPartition ?? 4 * 1024 * 1024 });
  }

  async start(): Promise<void> {
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.assigned = this.seek(payload.memberAssignment[this.options.topic] ?? []);
      // awaited by the next batch, which throws it on
      this.assigned.catch(() => {});
    });
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: [this.options.topic], fromBeginning: true });
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (payload) => this.eachBatch(payload) });
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.consumer.disconnect();
  }

  private async seek(partitions: number[]): Promise<void> {
    this.positions.clear();
    const kept = await this.options.positions(partitions);
    for (const partition of partitions) {
      const position = kept.get(partition) ?? { offset: 0, clock: 0 };
      this.positions.set(partition, position);
      this.consumer.seek({ topic: this.options.topic, partition, offset: String(position.offset) });
    }
  }

  private async eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }: EachBatchPayload): Promise<void> {
    await this.assigned;
    const { partition } = batch;
    for (let pause = 100; ; pause = Math.min(pause * 2, 3000)) {
      const before = this.positions.get(partition);
      if (this.stopping || !isRunning() || isStale() || !before) return;
      let clock = before.clock;
      const records = batch.messages
        .filter((message) => Number(message.offset) >= before.offset)
        .map((message) => new LogRecord(batch.topic, partition, message, (clock = Math.max(clock, Number(message.timestamp)))));
      if (records.length === 0) break;
      const after: Position = { offset: Number(batch.lastOffset()) + 1, clock };
      try {
        await this.options.handle(partition, records, before, after);
        this.positions.set(partition, after);
        break;
      } catch (error) {
        if (error instanceof Fenced) {
          this.log.info({ group: this.options.group, partition, offset: before.offset }, 'log.fenced');
          await this.seek([...this.positions.keys()]);
          return;
        }
        this.log.warn({ group: this.options.group, partition, offset: before.offset, err: error }, 'log.batch-failed');
        await new Promise((resolve) => setTimeout(resolve, pause));
        await heartbeat();
      }
    }
    resolveOffset(batch.lastOffset());
    await heartbeat();
  }
}
