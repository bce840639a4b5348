import type { EmitterId } from '#contracts';
import {
  coversStream,
  type DeletedRange,
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

/** A subscriber to one stream of an emitter, or to the streams that `*` stands for. */
export interface LiveListener {
  readonly emitterId: EmitterId;
  readonly stream: Stream;
  take(event: LiveEvent): void;
  /** Events of the emitter are deleted from here on. */
  forget(deleted: DeletedRange): void;
}

/**
 * The position in each partition from which a subscriber gets the events of the log. It reads those below from the store, and those that are older than the
 * last record below: they may have higher offsets in a log that Kafka has lost.
 */
export type Seam = ReadonlyMap<number, Pick<Position, 'offset' | 'clock'>>;

/** Passes the events of the log to their subscribers, and tracks the position in the log. */
export class LiveHub {
  /** The next offset of each partition: all records below it have been passed on. */
  readonly positions = new Map<number, Position>();
  private readonly listeners = new Map<string, Set<LiveListener>>();

  constructor(private readonly options: { maxEventBytes?: number } = {}) {}

  /** Returns the seam, from which on the subscriber gets every event, in the order of the log. */
  join(listener: LiveListener): Seam {
    const own = this.listeners.get(listener.emitterId);
    if (own) own.add(listener);
    else this.listeners.set(listener.emitterId, new Set([listener]));
    return new Map(this.positions);
  }

  leave(listener: LiveListener): void {
    const own = this.listeners.get(listener.emitterId);
    if (own?.delete(listener) && own.size === 0) this.listeners.delete(listener.emitterId);
  }

  /** Handles the next record of a partition; skips one that it has already handled. Returns the number of subscribers of its emitter. */
  take(record: EventLogRecord & { timestamp?: number }): number {
    const { partition, offset, clock, timestamp } = record;
    if (offset < (this.positions.get(partition)?.offset ?? 0)) return 0;
    // before the subscribers get it: for one that joins because of an event, that event is below the seam
    this.positions.set(partition, { offset: offset + 1, clock, timestamp });
    // most records belong to emitters without subscribers: they are not even parsed
    const own = this.listeners.get(emitterOf(record) ?? '');
    if (!own) return 0;
    const event = readEventRecord(record, { maxBytes: this.options.maxEventBytes ?? MAX_EVENT_BYTES });
    // its signature is not verified: a forged one only shows a repeated emit
    if (event.kind === 'delete') for (const listener of [...own]) listener.forget(event);
    if (event.kind === 'event') {
      const live = new LiveEvent(event);
      for (const listener of [...own]) if (coversStream(listener.stream, event.stream)) listener.take(live);
    }
    return own.size;
  }

  /** The partition was recreated: its records are passed on from the beginning. */
  restart(partition: number): void {
    this.positions.set(partition, { offset: 0, clock: 0 });
  }

  /** Discards the positions when the log is no longer read. */
  reset(): void {
    this.positions.clear();
  }
}

/** Whether a subscriber that joined at the seam reads this event from the store. */
export function isBelow(seam: Seam, place: EventPlace): boolean {
  const { partition, offset } = logPlaceOf(place);
  const at = seam.get(partition);
  return at !== undefined && (offset < at.offset || place.ms < at.clock);
}
