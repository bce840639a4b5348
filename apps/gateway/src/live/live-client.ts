import type { EmitterId } from '#contracts';
import { comparePlaces, type EventPlace, type EventSummary, parseEventId, type Stream } from '#events';
import { commentFrame, type Emit, type FramedEmit, eventFrame, type LiveEvent } from './live-event.js';
import type { LiveListener } from './live-hub.js';
import type { RecentDeletions } from './recent-deletions.js';

/** The connection of a client, for frames. */
export interface Outlet {
  /** Bytes that were written but not yet sent. */
  readonly pending: number;
  readonly isClosed: boolean;
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
  readonly after: EventPlace | null;
  /** Number of events sent. */
  sent = 0;
  private readonly emits = new RecentEmits();
  private waiting: FramedEmit[] | null = [];
  private waitingBytes = 0;

  constructor(
    wanted: WantedStream,
    private readonly outlet: Outlet,
  ) {
    ({ emitterId: this.emitterId, stream: this.stream, expand: this.expand, after: this.after } = wanted);
  }

  /** Handles an event from the log. */
  take(event: LiveEvent): void {
    // until its stream ends: the request for it may still wait for the store
    if (this.outlet.isClosed) return;
    if (this.after && comparePlaces(event.emitted.place, this.after) <= 0) {
      // the client got it from another gateway that is ahead of this one; a producer may still repeat it
      this.emits.add(event.emitted, event.deletions);
      return;
    }
    const framed = event.framed(this.expand);
    if (!this.waiting) return this.send(framed);
    this.waiting.push(framed);
    this.outlet.hold(framed.frame);
    this.waitingBytes += framed.frame.length;
    if (this.waitingBytes > MOST_WAITING_BYTES) this.outlet.cutOff();
  }

  /** Remembers a stored event that the client has received before. */
  knows(event: Pick<EventSummary, 'id' | 'metadata'>): void {
    this.emits.add(emittedOf(event));
  }

  /** Sends a stored event, given as JSON. A caller that sends many waits for `drained` in between. */
  sendStored({ id, metadata }: Pick<EventSummary, 'id' | 'metadata'>, json: string): void {
    if (this.emits.add(emittedOf({ id, metadata }))) this.write(eventFrame(id, json));
  }

  /** Sends a comment for people who read the stream; clients ignore it. */
  remark(text: string): void {
    this.outlet.write(commentFrame(text));
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
    if (!this.emits.add(framed, framed.deletions)) return;
    // counts only what was pending before, so that one large event does not disconnect the client
    if (this.outlet.pending > MOST_PENDING_BYTES) return this.outlet.cutOff();
    this.write(framed.frame);
  }

  private write(frame: Buffer): void {
    this.sent += 1;
    this.outlet.write(frame);
  }
}

const emittedOf = ({ id, metadata }: Pick<EventSummary, 'id' | 'metadata'>): Emit => ({
  stream: metadata.name,
  emitId: metadata.emit_id,
  place: parseEventId(id) ?? { ms: 0, seq: 0 },
});

/** The number of emits of a stream that the store keeps: it skips an emit whose id is among them. */
const REMEMBERED = 100;
/** The number of emits that a client remembers of all streams: `*` covers any number of them. They need 40 KB, and an account can have 2000 clients. */
const REMEMBERED_IN_ALL = 1000;
/** A stream needs as much memory as this many emits. */
const STREAM_COST = 5;

/**
 * The last emit ids of each stream that a client received, so that a producer's retry, which appends an emit to the log twice, is sent once. If there are
 * too many streams, those that have emitted least recently are forgotten.
 */
export class RecentEmits {
  /** The places of the events by emit id, by stream. */
  private readonly streams = new Map<Stream, Map<string, EventPlace>>();
  private cost = 0;

  /**
   * Adds an emit; returns whether it is a new event. An emit id is unique within its stream, unless its event is deleted.
   * @param deletions those that an event from the log may be behind
   */
  add({ stream, emitId, place }: Emit, deletions?: RecentDeletions): boolean {
    const ids = this.streams.get(stream) ?? this.begin(stream);
    const known = ids.get(emitId);
    if (known) {
      if (!deletions?.isDeleted({ stream, place: known }, place)) return false;
      this.remove(ids, emitId);
    }
    // it becomes the last one
    this.streams.delete(stream);
    this.streams.set(stream, ids);
    ids.set(emitId, place);
    this.cost++;
    if (ids.size > REMEMBERED) this.remove(ids, firstOf(ids));
    while (this.cost > REMEMBERED_IN_ALL) this.forgetStream(firstOf(this.streams));
    return true;
  }

  private begin(stream: Stream): Map<string, EventPlace> {
    const ids = new Map<string, EventPlace>();
    this.streams.set(stream, ids);
    this.cost += STREAM_COST;
    return ids;
  }

  private remove(ids: Map<string, EventPlace>, emitId: string): void {
    ids.delete(emitId);
    this.cost--;
  }

  private forgetStream(stream: Stream): void {
    this.cost -= STREAM_COST + (this.streams.get(stream)?.size ?? 0);
    this.streams.delete(stream);
  }
}

const firstOf = <Key>(map: Map<Key, unknown>): Key => map.keys().next().value as Key;
