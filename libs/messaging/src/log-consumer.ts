import type { Consumer, EachBatchPayload } from 'kafkajs';
import { kafkaName } from '#contracts';
import type { Log } from '#observability';
import { oldestRecord, WatchedConsumer } from './consumer-life.js';
import { eachSecond } from './each-second.js';
import { Gathering } from './gathering.js';
import type { ConsumerSettings } from './handlers.js';
import type { KafkaClient } from './kafka.js';
import { withEmptyBatches } from './kafkajs-groups.js';
import { fetchedOf, hasNoRecords } from './log-continuity.js';
import { LogEnds } from './log-ends.js';
import { LogIntake, type LogIntakeOptions } from './log-intake.js';

export interface LogConsumerOptions extends LogIntakeOptions, Pick<ConsumerSettings, 'gatherMs' | 'vital'> {
  group: string;
}

/** Before decompression; at least one batch of the producer is always fetched. Large fetches keep the event loop busy for long. */
const MAX_BYTES_PER_PARTITION = 256 * 1024;

/** A consumer whose position is stored together with its effects, so that each record counts once. The group's offsets are not used. */
export class LogConsumer {
  private readonly watched: WatchedConsumer;
  private readonly consumer: Consumer;
  private readonly intake: LogIntake;
  private readonly gathering: Gathering;
  private readonly ends: LogEnds;
  private stopEachSecond: () => void = () => {};

  constructor(
    kafka: KafkaClient,
    log: Log,
    private readonly options: LogConsumerOptions,
  ) {
    this.watched = new WatchedConsumer(kafka, kafkaName(options.group), log, {
      vital: options.vital,
      ownGroup: options.ownGroup,
      onInterruption: () => this.intake.reverify(),
      config: { maxBytesPerPartition: MAX_BYTES_PER_PARTITION },
    });
    this.consumer = this.watched.consumer;
    this.intake = new LogIntake(log, options, {
      seek: (partition, offset) => this.watched.seek(options.topic, partition, offset),
      pauseOnly: (partitions) => this.watched.pauseOnly(options.topic, partitions),
    });
    this.gathering = new Gathering(options.gatherMs ?? 0);
    this.ends = new LogEnds(kafka, log, (_, partition, end, next) => this.intake.endsEarly(partition, end, next));
  }

  async start(): Promise<void> {
    this.consumer.on(
      this.consumer.events.GROUP_JOIN,
      ({ payload }) => void this.intake.assign(payload.memberAssignment[this.options.topic] ?? []),
    );
    // not only with each fetch: a partition whose records are not handled is paused
    this.stopEachSecond = eachSecond(() => {
      this.watched.setLag(this.intake.lag);
      oldestRecord.set({ group: kafkaName(this.options.group) }, this.intake.oldestMs / 1000);
    });
    await this.watched.start([this.options.topic], {
      fromBeginning: true,
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: withEmptyBatches((payload) => this.eachBatch(payload)),
    });
  }

  /** The database was restored: reads again from the positions in it. */
  rewind(): void {
    void this.intake.rewind();
  }

  async stop(): Promise<void> {
    this.stopEachSecond();
    oldestRecord.remove({ group: kafkaName(this.options.group) });
    await this.intake.stop();
    await this.watched.stop();
  }

  private async eachBatch({ batch, resolveOffset, isRunning, isStale }: EachBatchPayload): Promise<void> {
    if (hasNoRecords(batch)) return this.ends.check(batch, this.intake.next(batch.partition));
    // all of its records are hidden, and kafkajs continues behind them
    if (batch.isEmpty()) return void this.intake.take({ partition: batch.partition, ...fetchedOf(batch) });
    if (!isRunning() || isStale()) return;
    if (this.intake.take({ partition: batch.partition, ...fetchedOf(batch) })) resolveOffset(batch.lastOffset());
    await this.gathering.rest(batch);
  }
}
