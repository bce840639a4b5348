import { Injectable } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, findEvent, isNotFound, type StoredEvent, type UserId } from '#contracts';
import { deletedBy, type EmittedEvent, type EventPlace, eventIdOf, logPlaceOf, readEventRecord } from '#events';
import { LimitPerKey } from '#limits';
import { LogReader, type LogRecord, Messages } from '#messaging';
import { RoutingConfig } from '../../routing.config.js';

/** Events of one account that are read from the log at a time: each takes a consumer, for up to 25 seconds. */
const READ_PER_ACCOUNT = 4;

/** Events of the past: from the log, which has all of what their producers stated, or else from the store. */
@Injectable()
export class RecordedEvents {
  private readonly reads = new LimitPerKey<UserId>(READ_PER_ACCOUNT);

  constructor(
    private readonly messages: Messages,
    private readonly reader: LogReader,
    private readonly config: RoutingConfig,
  ) {}

  /** The event as it was emitted; undefined if it is deleted, or neither in the log nor in the store. */
  async find(ownerId: UserId, emitterId: EmitterId, place: EventPlace): Promise<EmittedEvent | undefined> {
    const known = await this.inStore(ownerId, emitterId, place);
    if (!known) return undefined;
    const { deletions } = known;
    const event = (await this.inLog(ownerId, emitterId, place)) ?? eventOf(emitterId, place, known);
    return event && !deletedBy(deletions)(event.stream, place) ? event : undefined;
  }

  /** The same to show it, without waiting: without what only the log has where the store has the event, and without the latest deletions. */
  async look(ownerId: UserId, emitterId: EmitterId, place: EventPlace): Promise<EmittedEvent | undefined> {
    const known = await this.inStore(ownerId, emitterId, place, { may_lag: true });
    if (!known) return undefined;
    const event = eventOf(emitterId, place, known) ?? (await this.inLog(ownerId, emitterId, place));
    return event && !deletedBy(known.deletions)(event.stream, place) ? event : undefined;
  }

  /** The event at this place of the log, of any account. `ownerId`: the account that requests it. */
  at(ownerId: UserId, place: EventPlace): Promise<EmittedEvent | undefined> {
    return this.inLog(ownerId, undefined, place);
  }

  /** Whether the owner has deleted the event. */
  async isDeleted(ownerId: UserId, emitterId: EmitterId, stream: string, place: EventPlace): Promise<boolean> {
    const known = await this.inStore(ownerId, emitterId, place);
    return known !== undefined && deletedBy(known.deletions)(stream, place);
  }

  /** Undefined if the emitter does not exist any more: its events went with it. */
  private async inStore(
    owner_id: UserId,
    emitter_id: EmitterId,
    place: EventPlace,
    options: { may_lag?: boolean } = {},
  ): Promise<StoredEvent | undefined> {
    try {
      return await this.messages.request(
        findEvent,
        { owner_id, emitter_id, event_id: eventIdOf(place), ...options },
        { account: owner_id, key: emitter_id },
      );
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  private inLog(ownerId: UserId, emitterId: EmitterId | undefined, place: EventPlace): Promise<EmittedEvent | undefined> {
    const refusal = `at most ${READ_PER_ACCOUNT} events of an account are read from the log at a time`;
    return this.reads.run(ownerId, refusal, () => this.readLog(emitterId, place));
  }

  private async readLog(emitterId: EmitterId | undefined, place: EventPlace): Promise<EmittedEvent | undefined> {
    const { partition, offset } = logPlaceOf(place);
    const bounds = (await this.reader.bounds(EVENTS_TOPIC)).get(partition);
    if (!bounds || offset < bounds.from || offset >= bounds.to) return undefined;
    let found: { event: EmittedEvent; timestamp: number } | undefined;
    const range = new Map([[partition, { from: offset, to: offset + 1 }]]);
    await this.reader.read('routing', EVENTS_TOPIC, range, (_, [record]) => {
      if (!record) return false;
      // only a reader that has begun before it knows its clock
      const recorded = Object.create(record, { clock: { value: place.ms } }) as LogRecord;
      const event = readEventRecord(recorded, { maxBytes: this.config.maxEventBytes });
      const isThis = event.kind === 'event' && event.emitterId === (emitterId ?? event.emitterId);
      if (isThis) found = { event, timestamp: record.timestamp };
      return false;
    });
    return found && (await this.isClock(place, found.timestamp)) ? found.event : undefined;
  }

  /**
   * Whether the record of the place, with this timestamp, has this clock: a later one than the timestamp is the latest timestamp of the records before. With
   * another clock, the id would be that of an event which no deletion covers.
   */
  private async isClock(place: EventPlace, timestamp: number): Promise<boolean> {
    if (place.ms <= timestamp) return place.ms === timestamp;
    const { partition, offset } = logPlaceOf(place);
    const firstSince = async (ms: number) => (await this.reader.since(EVENTS_TOPIC, ms)).get(partition)?.from ?? 0;
    const [reached, exceeded] = await Promise.all([firstSince(place.ms), firstSince(place.ms + 1)]);
    return reached < offset && exceeded >= offset;
  }
}

const eventOf = (emitterId: EmitterId, place: EventPlace, { event }: StoredEvent): EmittedEvent | undefined =>
  event === null
    ? undefined
    : { kind: 'event', place, emitterId, stream: event.stream, emitId: event.emit_id, json: Buffer.from(event.json), hops: 0 };
