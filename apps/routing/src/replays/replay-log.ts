import { Injectable } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, type EventDeletion, listDeletions, type UserId } from '#contracts';
import {
  comparePlaces,
  coversStream,
  deletedBy,
  type EmittedEvent,
  emitterOf,
  eventIdOf,
  type EventPlace,
  parseEventId,
  readEventRecord,
  WAITING_STREAM,
} from '#events';
import { type LogRanges, LogReader, type LogRecord, Messages } from '#messaging';
import { detached } from '../deliveries/delivery.js';
import { RoutingConfig } from '../routing.config.js';

/** The events that a replay delivers. */
export interface ReplayedPart {
  owner_id: UserId;
  emitter_id: EmitterId;
  stream: string;
  from_id: string;
  to_id: string;
  /** The next offset of each partition; a partition that is absent is read from the beginning of the part. */
  offsets: Record<string, number>;
  /** The clock of the record below each offset: it may be far ahead of the records there, because the leader of the partition has changed. */
  clocks?: Record<string, number>;
}

export interface ReplayedChunk {
  events: EmittedEvent[];
  /** As above, behind what was read. */
  offsets: Record<string, number>;
  clocks: Record<string, number>;
  /** There is nothing behind it. */
  last: boolean;
}

/** The number of records that are read before the part, because an event's clock never falls behind that of the records before it. */
const RECORDS_BEFORE = 200;
/** Read at once, and one event more. */
const READ_BYTES = 8 * 1024 * 1024;
/** After this time, what has been read is delivered first, however little that is: in a large log, the events may be far apart. */
const STEP_MS = 10_000;
const FIRST: EventPlace = { ms: 0, seq: 0 };

/** Replies with deletions after which all of them are read again. */
const MOST_REPLIES = 100;

/**
 * The deletions that concern a part of the log. They are read once, and then only later ones: a client that deletes each event it has read makes very many.
 */
export class PartDeletions {
  private known: ReturnType<typeof deletedBy>[] = [];
  private last: string | undefined;

  constructor(private readonly after: (id: string | undefined) => Promise<EventDeletion[]>) {}

  /** Includes each that was acknowledged before the call. */
  async refresh(): Promise<void> {
    if (this.known.length === MOST_REPLIES) [this.known, this.last] = [[], undefined];
    const deletions = (await this.after(this.last)).filter(({ at_id }) => at_id !== this.last);
    if (deletions.length === 0) return;
    this.last = deletions.at(-1)?.at_id;
    this.known.push(deletedBy(deletions));
  }

  include({ stream, place }: EmittedEvent): boolean {
    return this.known.some((isDeleted) => isDeleted(stream, place));
  }
}

/** Reads the events to replay from the log: whether or not they are stored or were matched, but none that was deleted. */
@Injectable()
export class ReplayLog {
  constructor(
    private readonly messages: Messages,
    private readonly reader: LogReader,
    private readonly config: RoutingConfig,
  ) {}

  /**
   * How many events there are, and the id of the last one: an end in the future does not include events that are emitted later, which are delivered live.
   * Throws Unavailable if that takes too long.
   */
  async count(part: ReplayedPart, { withinMs }: { withinMs?: number } = {}): Promise<{ events: number; to_id: string }> {
    const { count, newest } = await this.read(part, this.deletionsOf(part), { limit: Infinity, keep: false, withinMs });
    return { events: count, to_id: newest ? eventIdOf(newest) : part.to_id };
  }

  deletionsOf({ owner_id, emitter_id, from_id, to_id }: ReplayedPart): PartDeletions {
    return new PartDeletions((after_id) =>
      this.messages.request(listDeletions, { owner_id, emitter_id, from_id, to_id, after_id }, { account: owner_id, key: emitter_id }),
    );
  }

  /** The next events, in the order of the log, at most `limit`, and no more after 8 MiB or 10 seconds. */
  next(part: ReplayedPart, deletions: PartDeletions, limit: number): Promise<ReplayedChunk> {
    const until = performance.now() + STEP_MS;
    return this.read(part, deletions, { limit, keep: true, until });
  }

  private async read(
    part: ReplayedPart,
    deletions: PartDeletions,
    { limit, keep, until = Infinity, withinMs }: { limit: number; keep: boolean; until?: number; withinMs?: number },
  ): Promise<ReplayedChunk & { count: number; newest: EventPlace | undefined }> {
    const { emitter_id, stream } = part;
    const [from, to] = [parseEventId(part.from_id) ?? FIRST, parseEventId(part.to_id) ?? FIRST];
    await deletions.refresh();
    const [offsets, clocks] = [{ ...part.offsets }, { ...part.clocks }];
    const events: EmittedEvent[] = [];
    let [count, bytes] = [0, 0];
    let newest: EventPlace | undefined;
    const isFull = (): boolean => count >= limit || bytes >= READ_BYTES || performance.now() > until;
    const isMeant = (event: EmittedEvent): boolean =>
      event.stream !== WAITING_STREAM &&
      coversStream(stream, event.stream) &&
      comparePlaces(from, event.place) <= 0 &&
      comparePlaces(event.place, to) <= 0 &&
      !deletions.include(event);
    const take = (partition: number, records: LogRecord[]): boolean => {
      for (const record of records) {
        if (isFull()) return false;
        const event =
          emitterOf(record) === emitter_id && record.offset >= (part.offsets[partition] ?? 0) ? this.eventOf(record) : undefined;
        if (record.offset >= (offsets[partition] ?? 0)) {
          offsets[partition] = record.offset + 1;
          clocks[partition] = record.clock;
        }
        if (!event || !isMeant(event)) continue;
        count += 1;
        if (!newest || comparePlaces(newest, event.place) < 0) newest = event.place;
        if (!keep) continue;
        bytes += event.json.length;
        events.push({ ...event, json: detached(event.json) });
      }
      return !isFull();
    };
    await this.reader.read('routing', EVENTS_TOPIC, await this.ranges(from, to, part), take, { withinMs });
    return { events, offsets, clocks, count, newest, last: !isFull() };
  }

  private eventOf(record: LogRecord): EmittedEvent | undefined {
    const event = readEventRecord(record, { maxBytes: this.config.maxEventBytes });
    return event.kind === 'event' ? event : undefined;
  }

  private async ranges(from: EventPlace, to: EventPlace, { offsets, clocks = {} }: ReplayedPart): Promise<LogRanges> {
    const [bounds, since, until] = await Promise.all([
      this.reader.bounds(EVENTS_TOPIC),
      this.reader.since(EVENTS_TOPIC, from.ms),
      to.ms < Date.now() ? this.reader.since(EVENTS_TOPIC, to.ms + 1) : undefined,
    ]);
    return new Map(
      [...bounds].map(([partition, bound]) => {
        const begin = Math.max(since.get(partition)?.from ?? bound.from, offsets[partition] ?? 0);
        const end = until?.get(partition)?.from ?? bound.to;
        const first = begin >= end ? end : Math.max(bound.from, begin - RECORDS_BEFORE);
        return [partition, { from: first, to: end, clock: clocks[partition] }];
      }),
    );
  }
}
