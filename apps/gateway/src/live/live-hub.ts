import type { EmitterId } from '#contracts';
import { coversStream, type EventLogRecord, MAX_EVENT_BYTES, readEventRecord, type Stream } from '#events';
import type { Position } from '#messaging';
import { LiveEvent } from './live-event.js';

/** Who wants the events of a stream of an emitter, or of all that `*` stands for. */
export interface LiveListener {
  readonly emitterId: EmitterId;
  readonly stream: Stream;
  take(event: LiveEvent): void;
}

/** The offset of each partition from which on a listener is given the events; what is below it has to find in the store. */
export type Seam = ReadonlyMap<number, number>;

/** Hands the events of the log to those who listen, and knows how far in the log it is. */
export class LiveHub {
  /** Where each partition is read on: all below has been handed out. */
  readonly positions = new Map<number, Position>();
  private readonly listeners = new Map<string, Set<LiveListener>>();

  constructor(private readonly options: { maxEventBytes?: number } = {}) {}

  /** From the answered seam on the listener gets every event, in the order of the log. */
  join(listener: LiveListener): Seam {
    const own = this.listeners.get(listener.emitterId);
    if (own) own.add(listener);
    else this.listeners.set(listener.emitterId, new Set([listener]));
    return new Map([...this.positions].map(([partition, { offset }]) => [partition, offset]));
  }

  leave(listener: LiveListener): void {
    const own = this.listeners.get(listener.emitterId);
    if (own?.delete(listener) && own.size === 0) this.listeners.delete(listener.emitterId);
  }

  /** Takes the next record of a partition; one that it has had already is passed over. */
  take(record: EventLogRecord & { timestamp?: number }): void {
    const { partition, offset, clock, timestamp } = record;
    if (offset < (this.positions.get(partition)?.offset ?? 0)) return;
    // before anyone is told: whoever joins because of an event finds it below the seam
    this.positions.set(partition, { offset: offset + 1, clock, timestamp });
    // most records are of emitters that nobody listens to: they aren't even parsed
    const own = this.listeners.get(record.key ?? record.header('ce_source') ?? '');
    if (!own) return;
    const event = readEventRecord(record, { maxBytes: this.options.maxEventBytes ?? MAX_EVENT_BYTES });
    if (event.kind !== 'event') return;
    const live = new LiveEvent(event);
    for (const listener of [...own]) if (coversStream(listener.stream, event.stream)) listener.take(live);
  }

  /** The partition has another log, which is handed out from its beginning. */
  restart(partition: number): void {
    this.positions.set(partition, { offset: 0, clock: 0 });
  }

  /** Forgets where it is, when the log is no longer read. */
  reset(): void {
    this.positions.clear();
  }
}

/** Whether the store has to show this event to the one who joined at the seam. */
export const isBelow = (seam: Seam, { partition, offset }: { partition: number; offset: number }): boolean =>
  offset < (seam.get(partition) ?? 0);
