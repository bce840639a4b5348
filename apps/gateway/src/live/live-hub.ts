import type { EmitterId } from '#contracts';
import {
  coversStream,
  emitterOf,
  type EventLogRecord,
  type EventPlace,
  logPlaceOf,
  MAX_EVENT_BYTES,
  readEventRecord,
  type Stream,
} from '#events';
import type { Position } from '#messaging';
import { LiveEvent } from './live-event.js';
import { RecentDeletions } from './recent-deletions.js';

/** A subscriber to one stream of an emitter, or to the streams that `*` stands for. */
export interface LiveListener {
  readonly emitterId: EmitterId;
  readonly stream: Stream;
  /** Called once, before it gets any event. */
  begin(seam: Seam): void;
  take(event: LiveEvent): void;
}

/**
 * The position in each partition from which a subscriber gets the events of the log. It reads those below from the store, and those that are older than the
 * last record below: they may have higher offsets in a log that Kafka has lost.
 */
export type Seam = ReadonlyMap<number, Pick<Position, 'offset' | 'clock'>>;

/** Passes the events of the log to their subscribers, and tracks the position in the log. */
export class LiveHub {
  /** The next offset of each partition: all records below it have been passed on. */
  positions = new Map<number, Position>();
  /** Those with subscribers. */
  private readonly emitters = new Map<string, { listeners: Set<LiveListener>; deletions: RecentDeletions }>();

  constructor(private readonly options: { maxEventBytes?: number } = {}) {}

  /** Returns the seam, from which on the subscriber gets every event, in the order of the log. */
  join(listener: LiveListener): Seam {
    const seam = new Map(this.positions);
    listener.begin(seam);
    const own = this.emitters.get(listener.emitterId);
    if (own) own.listeners.add(listener);
    else this.emitters.set(listener.emitterId, { listeners: new Set([listener]), deletions: new RecentDeletions() });
    return seam;
  }

  leave(listener: LiveListener): void {
    const own = this.emitters.get(listener.emitterId);
    if (own?.listeners.delete(listener) && own.listeners.size === 0) this.emitters.delete(listener.emitterId);
  }

  /** Handles the next record of a partition; skips one that it has already handled. Returns the number of subscribers of its emitter if it is an event. */
  take(record: EventLogRecord & { timestamp?: number }): number {
    const { partition, offset, clock, timestamp } = record;
    if (offset < (this.positions.get(partition)?.offset ?? 0)) return 0;
    // before the subscribers get it: for one that joins because of an event, that event is below the seam
    this.positions.set(partition, { offset: offset + 1, clock, timestamp });
    // most records belong to emitters without subscribers: they are not even parsed
    const own = this.emitters.get(emitterOf(record) ?? '');
    if (!own) return 0;
    const event = readEventRecord(record, { maxBytes: this.options.maxEventBytes ?? MAX_EVENT_BYTES });
    // its signature is not verified: a forged one only shows a repeated emit
    if (event.kind === 'delete') own.deletions.add(event);
    if (event.kind !== 'event') return 0;
    const live = new LiveEvent(event, own.deletions);
    for (const listener of [...own.listeners]) if (coversStream(listener.stream, event.stream)) listener.take(live);
    return own.listeners.size;
  }

  /** The partition was recreated: its records are passed on from the beginning. */
  restart(partition: number): void {
    this.positions.set(partition, { offset: 0, clock: 0 });
  }

  /** Discards all positions when reading ends. A reader that has not stopped yet adds its positions to the discarded ones. */
  reset(): void {
    this.positions = new Map();
  }
}

/** Whether a subscriber that joined at the seam reads this event from the store. */
export function isBelow(seam: Seam, place: EventPlace): boolean {
  const { partition, offset } = logPlaceOf(place);
  const at = seam.get(partition);
  return at !== undefined && (offset < at.offset || place.ms < at.clock);
}
