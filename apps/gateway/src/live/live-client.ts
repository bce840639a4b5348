import type { EmitterId } from '#contracts';
import { comparePlaces, type EventPlace, type EventSummary, type Stream } from '#events';
import type { LiveEvent } from './live-event.js';
import type { LiveListener } from './live-hub.js';
import { RecentEmits } from './recent-emits.js';
import { commentFrame, eventFrame } from './sse-frame.js';

/** Where a client's frames go. */
export interface Outlet {
  /** Bytes that were written and not taken off yet. */
  readonly pending: number;
  write(frame: Buffer): void;
  /** Resolves when all that was written has been taken off, and when it never will be. */
  drained(): Promise<void>;
  /** Ends it at once; what is pending is lost. */
  cutOff(): void;
}

export interface WantedStream {
  emitterId: EmitterId;
  /** One, or `*`. */
  stream: Stream;
  /** Events over 1 KB as a whole. */
  expand: boolean;
  /** The last event that the client has seen; null: from now on. */
  after: EventPlace | null;
}

/** What may wait for a client: of one that doesn't read, more isn't kept. */
export const MOST_PENDING_BYTES = 1024 * 1024;

/**
 * What one client is shown, and in what order.
 *
 *   events wait, while the answer begins and what was missed is sent ── goLive ──► events are sent as they come
 */
export class LiveClient implements LiveListener {
  readonly emitterId: EmitterId;
  readonly stream: Stream;
  readonly expand: boolean;
  readonly after: EventPlace | null;
  /** How many events it was sent. */
  sent = 0;
  private readonly emits = new RecentEmits();
  private waiting: LiveEvent[] | null = [];
  private waitingBytes = 0;

  constructor(
    wanted: WantedStream,
    private readonly outlet: Outlet,
  ) {
    ({ emitterId: this.emitterId, stream: this.stream, expand: this.expand, after: this.after } = wanted);
  }

  /** An event of the log. */
  take(event: LiveEvent): void {
    if (this.after && comparePlaces(event.emitted.place, this.after) <= 0) {
      // it came by another gateway, which reads ahead of us; but it may be repeated yet
      this.emits.add(event.emitted.stream, event.emitted.emitId);
      return;
    }
    if (!this.waiting) return this.send(event);
    this.waiting.push(event);
    this.waitingBytes += event.frame(this.expand).length;
    if (this.waitingBytes > MOST_PENDING_BYTES) this.outlet.cutOff();
  }

  /** An event that the client has seen, of the store. */
  knows({ metadata }: EventSummary): void {
    this.emits.add(metadata.name, metadata.emit_id);
  }

  /** An event of the store, as its JSON. Whoever sends many waits for `drained` in between. */
  sendStored({ id, metadata }: EventSummary, json: string): void {
    if (this.emits.add(metadata.name, metadata.emit_id)) this.write(eventFrame(id, json));
  }

  /** A word to whoever reads along; no event. */
  remark(text: string): void {
    this.outlet.write(commentFrame(text));
  }

  drained(): Promise<void> {
    return this.outlet.drained();
  }

  /** The answer has begun, and all below the seam that was missed has been sent. */
  goLive(): void {
    const waiting = this.waiting ?? [];
    this.waiting = null;
    this.waitingBytes = 0;
    for (const event of waiting) this.send(event);
  }

  private send(event: LiveEvent): void {
    if (!this.emits.add(event.emitted.stream, event.emitted.emitId)) return;
    // what was pending before counts, so that one large event is no reason
    if (this.outlet.pending > MOST_PENDING_BYTES) return this.outlet.cutOff();
    this.write(event.frame(this.expand));
  }

  private write(frame: Buffer): void {
    this.sent += 1;
    this.outlet.write(frame);
  }
}
