import type { EmitterId } from '#contracts';
import { comparePlaces, type EventPlace, type EventSummary, logPlaceOf, parseEventId, type Stream } from '#events';
import { commentFrame, type FramedEmit, eventFrame, type LiveEvent } from './live-event.js';
import type { LiveListener, Seam } from './live-hub.js';
import { Emit, RecentEmits } from './recent-emits.js';

/** The connection of a client, for frames. */
export interface Outlet {
  /** Bytes that were written but not yet sent. */
  readonly pending: number;
  readonly isClosed: boolean;
  /** The number of emits that its client may remember now. */
  readonly mayRemember: number;
  write(frame: Buffer): void;
  /** Counts a frame as in memory for this connection until it is released; `write` does so itself. May cut off this or another connection. */
  hold(frame: Buffer): void;
  release(frame: Buffer): void;
  /** Resolves when all written bytes are sent, or never will be. */
  drained(): Promise<void>;
  /** Closes the connection at once and discards pending bytes. */
  cutOff(): void;
}

export interface WantedStream {
  emitterId: EmitterId;
  /** A stream name, or `*`. */
  stream: Stream;
  /** Whether to send events over 1 KB in full. */
  expand: boolean;
  /** The last event that the client received; null: start with new events. */
  after: EventPlace | null;
}

/** The most that may wait for a client that does not read. */
export const MOST_PENDING_BYTES = 1024 * 1024;
/** The most that may wait while a client gets the events that it missed, which takes as long as it reads them. */
export const MOST_WAITING_BYTES = 8 * MOST_PENDING_BYTES;
/** How far the clocks of the brokers may be ahead of each other, and of what is known of them. */
const SKEW_MS = 5 * 60_000;
const GAP = commentFrame('only the last 100 events are kept: there may have been more');
/** The number of waiting events that are sent in one turn of the event loop: about a millisecond of the main thread. */
const WAITING_AT_ONCE = 250;

/**
 * Decides which events one client gets, and in which order.
 *
 *   events wait while the response begins and missed events are sent ── goLive ──► events are sent as they arrive
 */
export class LiveClient implements LiveListener {
  readonly emitterId: EmitterId;
  readonly stream: Stream;
  readonly expand: boolean;
  /** The last event that the client received; null: it starts with new events. */
  after: EventPlace | null;
  /** Number of events sent. */
  sent = 0;
  private readonly emits = new RecentEmits(() => this.outlet.mayRemember);
  private waiting: FramedEmit[] | null = [];
  private waitingBytes = 0;
  private awaited: { place: EventPlace; taken: () => void } | undefined;

  constructor(
    wanted: WantedStream,
    private readonly outlet: Outlet,
  ) {
    ({ emitterId: this.emitterId, stream: this.stream, expand: this.expand, after: this.after } = wanted);
  }

  /**
   * An event in the future counts as none: it would hide all events until then. Its time is that of the broker of its partition, whose clock may be ahead. The
   * clocks of other partitions prove nothing: a quiet partition keeps a clock that was wrong once.
   */
  begin(seam: Seam): void {
    if (!this.after) return;
    const clock = seam.get(logPlaceOf(this.after).partition)?.clock ?? 0;
    if (this.after.ms > Math.max(Date.now(), clock) + SKEW_MS) this.after = null;
  }

  /** Handles an event from the log. */
  take(event: LiveEvent): void {
    // until its stream ends: the request for it may still wait for the store
    if (this.outlet.isClosed) return;
    if (this.after && isReceived(event.emit.place, this.after)) {
      // a producer may still repeat it
      this.emits.add(event.emit, event.deletions);
      return;
    }
    const framed = event.framed(this.expand);
    if (!this.waiting) return this.send(framed);
    this.waiting.push(framed);
    if (this.awaited && comparePlaces(framed.emit.place, this.awaited.place) >= 0) this.awaited.taken();
    this.outlet.hold(framed.frame);
    this.waitingBytes += framed.frame.length;
    if (this.waitingBytes > MOST_WAITING_BYTES) this.outlet.cutOff();
  }

  /** The events that wait until it is live. */
  get waits(): readonly FramedEmit[] {
    return this.waiting ?? [];
  }

  /** Resolves when the event at this place, or a later one, waits. */
  async took(place: EventPlace): Promise<void> {
    const last = this.waits.at(-1);
    if (last && comparePlaces(last.emit.place, place) >= 0) return;
    await new Promise<void>((taken) => (this.awaited = { place, taken }));
  }

  /** Remembers a stored event that the client has received, when the store has reached the seam: until then, its deletion may be below the seam. */
  knows(event: Pick<EventSummary, 'id' | 'metadata'>): void {
    const { name, emit_id } = event.metadata;
    this.emits.add(new Emit(name, emit_id, parseEventId(event.id) ?? { ms: 0, seq: 0 }));
  }

  /** Sends a stored event, given as JSON. A caller that sends many waits for `drained` in between. */
  sendStored({ id }: Pick<EventSummary, 'id'>, json: string): void {
    this.write(eventFrame(id, json));
  }

  /** Sends a comment: the client may have missed events that will not be sent. `@sluice/client` recognises it. */
  remarkGap(): void {
    this.outlet.write(GAP);
  }

  drained(): Promise<void> {
    return this.outlet.drained();
  }

  /** Call it when the response has begun and all missed events below the seam are sent. Resolves when those that waited are sent, as fast as the client reads. */
  async goLive(): Promise<void> {
    const waiting = this.waiting ?? [];
    while (waiting.length > 0) {
      for (const next of waiting.splice(0, WAITING_AT_ONCE)) {
        if (this.outlet.pending > MOST_PENDING_BYTES) await this.outlet.drained();
        this.send(next);
        this.outlet.release(next.frame);
        this.waitingBytes -= next.frame.length;
      }
      if (waiting.length > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.waiting = null;
  }

  private send(framed: FramedEmit): void {
    if (!this.emits.add(framed.emit, framed.deletions)) return;
    // counts only what was pending before, so that one large event does not disconnect the client
    if (this.outlet.pending > MOST_PENDING_BYTES) return this.outlet.cutOff();
    this.write(framed.frame);
  }

  private write(frame: Buffer): void {
    this.sent += 1;
    this.outlet.write(frame);
  }
}

/**
 * Whether a client whose last event is `last` has received an event, perhaps from another gateway that is ahead of this one. Both the times and, within a
 * partition, the offsets have to say so: a clock that was ahead and is corrected begins earlier times, and a new log begins lower offsets.
 */
function isReceived(place: EventPlace, last: EventPlace): boolean {
  const [{ partition, offset }, at] = [logPlaceOf(place), logPlaceOf(last)];
  return comparePlaces(place, last) <= 0 && !(partition === at.partition && offset > at.offset);
}
