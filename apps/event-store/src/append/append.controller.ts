import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { EVENTS_TOPIC, getStoredPositions, type StoredPosition } from '#contracts';
import { readEventRecord } from '#events';
import { Batch, Follows, Handles, type LogRecord, type Position, PositionsOf, Publisher, sendToDeadLetter } from '#messaging';
import { counter, histogram, LOG, type Log } from '#observability';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import type { Operation } from './replay.js';

const stored = counter('events_stored_total', 'Events stored.');
const repeated = counter('events_repeated_total', 'Emits that were skipped because they are already stored.');
const malformed = counter('events_malformed_total', 'Malformed records of the topic events.');
const seconds = histogram('events_append_seconds', 'Time from reading a batch to its commit.');

const GROUP = 'events';

/** Reads the topic `events` from the store's own position, and stores its records. Malformed ones go to the dead-letter topic. */
@Controller()
export class AppendController {
  /** The offsets below which malformed records are in the dead-letter topic, so that a repeated batch does not send them again. */
  private readonly deadLetteredBelow = new Map<number, number>();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly publisher: Publisher,
    private readonly appending: AppendService,
    private readonly events: AppendRepository,
    private readonly config: EventStoreConfig,
  ) {}

  /** Throws Fenced if the position of the partition is not `before`, because another process has moved it. */
  // events wait up to 50 ms for others, so that a steady trickle needs fewer transactions
  @Follows(EVENTS_TOPIC, GROUP, { gatherMs: 50 })
  async append(@Payload() { partition, records, before, after }: Batch): Promise<void> {
    const start = performance.now();
    const operations: Operation[] = [];
    // another log
    if ((records[0]?.offset ?? before.offset) < before.offset) this.deadLetteredBelow.delete(partition);
    for (const record of records) {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes });
      if (read.kind === 'malformed') await this.deadLetter(record, read.reason);
      else operations.push(read);
    }
    const appended = await this.appending.append(partition, operations, before, after);
    stored.inc(appended.stored);
    repeated.inc(appended.repeated);
    const duration = performance.now() - start;
    seconds.observe(duration / 1000);
    this.log.debug(
      { partition, offset: before.offset, records: records.length, ...appended, duration_ms: Math.round(duration) },
      'events.appended',
    );
  }

  @PositionsOf(GROUP)
  positions(@Payload() partitions: number[]): Promise<Map<number, Position>> {
    return this.events.positions(partitions);
  }

  /** Returns the positions up to which the topic is stored. A live stream begins there, and gets earlier events from this store. */
  @Handles(getStoredPositions)
  storedPositions(): Promise<StoredPosition[]> {
    return this.events.storedPositions();
  }

  private async deadLetter(record: LogRecord, reason: string): Promise<void> {
    if (record.offset < (this.deadLetteredBelow.get(record.partition) ?? 0)) return;
    await sendToDeadLetter(this.publisher, 'event-store', record, reason);
    malformed.inc();
    this.log.warn({ partition: record.partition, offset: record.offset, key: record.key?.slice(0, 100), reason }, 'event.malformed');
    this.deadLetteredBelow.set(record.partition, record.offset + 1);
  }
}
