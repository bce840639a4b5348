import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { type EmitterId, EVENTS_TOPIC, getStoredPositions, type StoredPosition } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { readEventRecord } from '#events';
import {
  Batch,
  deadLetterRecord,
  Follows,
  Handles,
  type LogRecord,
  type Position,
  PositionsOf,
  Publisher,
  sendOrSetAside,
} from '#messaging';
import { counter, histogram, LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendRepository, KEPT_STREAMS } from './append.repository.js';
import { AppendService } from './append.service.js';
import { partsOf } from './batch-parts.js';
import type { Operation } from './replay.js';
import { streamsRemoved } from './streams-removed.js';

const stored = counter(
  'events_stored_total',
  'Events stored. Of the events of one stream in a batch, those beyond the newest ones that are kept are never stored.',
);
const repeated = counter('events_repeated_total', 'Emits that were skipped because they are already stored.');
const malformed = counter('events_malformed_total', 'Malformed records of the topic events.');
const crowded = counter(
  'events_streams_limited_total',
  'Times at which an emitter had too many streams, and its oldest ones were removed.',
);
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
    private readonly box: SecretBox,
    private readonly emitters: EmitterDirectory,
  ) {}

  /** Throws Fenced if the position of the partition is not `before`, because another process has moved it. */
  // events wait up to 50 ms for others, so that a steady trickle needs fewer transactions
  @Follows(EVENTS_TOPIC, GROUP, { gatherMs: 50 })
  async append(@Payload() batch: Batch): Promise<void> {
    // if one of them fails, the batch is repeated and is fenced off, and the partition is read again from the stored position
    for (const part of partsOf(batch)) await this.appendPart(part);
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

  private async appendPart({ partition, records, before, after }: Batch): Promise<void> {
    const start = performance.now();
    const operations: Operation[] = [];
    const rejected: { record: LogRecord; reason: string }[] = [];
    // another log
    if ((records[0]?.offset ?? before.offset) < before.offset) this.deadLetteredBelow.delete(partition);
    for (const record of records) {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes, signer: this.box });
      if (read.kind === 'malformed') rejected.push({ record, reason: read.reason });
      else operations.push(read);
    }
    await this.deadLetter(partition, rejected);
    const appended = await this.appending.append(partition, operations, before, after);
    stored.inc(appended.stored);
    repeated.inc(appended.repeated);
    // the partition does not wait for it: the catalog may not respond
    if (appended.crowded) void this.reportCrowded(appended.crowded);
    const duration = performance.now() - start;
    seconds.observe(duration / 1000);
    this.log.debug(
      { partition, offset: before.offset, records: records.length, ...appended, duration_ms: Math.round(duration) },
      'events.appended',
    );
  }

  /** Never throws: the batch is stored, and a report that cannot be sent must not repeat it. */
  private async reportCrowded(emitterIds: EmitterId[]): Promise<void> {
    crowded.inc(emitterIds.length);
    this.log.warn({ emitter_ids: emitterIds, limit: KEPT_STREAMS }, 'streams.removed');
    try {
      const emitters = await this.emitters.find(emitterIds);
      const reports = emitterIds.map((id) => ({ topic: EVENTS_TOPIC, ...streamsRemoved(id, emitters.get(id)?.owner_id, new Date()) }));
      await this.publisher.send(reports);
    } catch (error) {
      this.log.warn({ err: error }, 'streams.not-reported');
    }
  }

  private async deadLetter(partition: number, rejected: { record: LogRecord; reason: string }[]): Promise<void> {
    const below = this.deadLetteredBelow.get(partition) ?? 0;
    const fresh = rejected.filter(({ record }) => record.offset >= below);
    const last = fresh.at(-1);
    if (!last) return;
    const copies = fresh.map(({ record, reason }) => deadLetterRecord('event-store', record, reason));
    await sendOrSetAside(copies, { publisher: this.publisher, service: 'event-store', log: this.log });
    malformed.inc(fresh.length);
    const { record, reason } = last;
    this.log.warn({ partition, offset: record.offset, key: record.key?.slice(0, 100), reason, records: fresh.length }, 'event.malformed');
    this.deadLetteredBelow.set(partition, record.offset + 1);
  }
}
