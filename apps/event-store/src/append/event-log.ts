import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Kafka } from 'kafkajs';
import { EVENTS_TOPIC, readEventRecord } from '#contracts';
import { KAFKA, LogConsumer, type LogRecord, type Position, Publisher, sendToDeadLetter } from '#messaging';
import { counter, histogram, LOG, type Log } from '#observability';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import type { Operation } from './operation.js';

const stored = counter('events_stored_total', 'Events taken into the store.');
const repeated = counter('events_repeated_total', 'Emits that the store had already.');
const malformed = counter('events_malformed_total', 'Records of the topic events that are no event.');
const seconds = histogram('events_append_seconds', 'From a batch of the log to its commit.');

/** Reads the topic `events` into the store. */
@Injectable()
export class EventLog implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LogConsumer;
  /** Below these offsets malformed records are in the dead-letter topic: a batch that is tried again doesn't send them again. */
  private readonly judged = new Map<number, number>();

  constructor(
    @Inject(KAFKA) kafka: Kafka,
    @Inject(LOG) private readonly log: Log,
    private readonly publisher: Publisher,
    private readonly appending: AppendService,
    private readonly config: EventStoreConfig,
    events: AppendRepository,
  ) {
    this.consumer = new LogConsumer(kafka, log, {
      group: 'event-store.events',
      topic: EVENTS_TOPIC,
      positions: (partitions) => events.positions(partitions),
      handle: (partition, records, before, after) => this.take(partition, records, before, after),
    });
  }

  onApplicationBootstrap(): Promise<void> {
    return this.consumer.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.consumer.stop();
  }

  private async take(partition: number, records: LogRecord[], before: Position, after: Position): Promise<void> {
    const start = performance.now();
    const operations: Operation[] = [];
    for (const record of records) {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes });
      if (read.kind === 'malformed') await this.putAside(record, read.reason);
      else operations.push(read);
    }
    const appended = await this.appending.append(partition, operations, before, after);
    stored.inc(appended.stored);
    repeated.inc(appended.repeated);
    seconds.observe((performance.now() - start) / 1000);
    this.log.debug(
      { partition, offset: before.offset, records: records.length, ...appended, duration_ms: Math.round(performance.now() - start) },
      'events.appended',
    );
  }

  private async putAside(record: LogRecord, reason: string): Promise<void> {
    if (record.offset < (this.judged.get(record.partition) ?? 0)) return;
    await sendToDeadLetter(this.publisher, 'event-store', record, reason);
    malformed.inc();
    this.log.warn({ partition: record.partition, offset: record.offset, key: record.key?.slice(0, 100), reason }, 'event.malformed');
    this.judged.set(record.partition, record.offset + 1);
  }
}
