import type { EmitterId } from '#contracts';
import { eventIdOf } from './event-id.js';
import type { Stream } from './streams.js';

/** An event as the API returns it. */
export interface EventSummary {
  id: string;
  indexed_at_ms: number;
  event: unknown;
  metadata: {
    emitter_id: EmitterId;
    emit_id: string;
    /** The name of the stream; empty for the default one. */
    name: Stream;
    summary?: string;
    /** The emitter's id of the item. */
    id?: string;
    /** In ms. */
    ts?: number;
  };
}

/** An event as a page contains it. */
export interface ShownEvent {
  stream: Stream;
  ms: number;
  seq: number;
  emit_id: string;
  /** The event's JSON, whole or truncated. */
  event: Buffer;
  summary: string | null;
  item_id: string | null;
  item_ts: number | null;
}

/**
 * The JSON text of an EventSummary. It contains the event as it was emitted, unparsed.
 *
 * `indexed_at_ms` is the time of the event's id rather than the time of storing it. So the live stream, which does not query the store,
 * shows the same value, and so does a second read of an event that was stored twice.
 */
export function eventSummaryJson(emitterId: EmitterId, shown: ShownEvent): string {
  const metadata = JSON.stringify({
    emitter_id: emitterId,
    emit_id: shown.emit_id,
    name: shown.stream,
    summary: shown.summary ?? undefined,
    id: shown.item_id ?? undefined,
    ts: shown.item_ts ?? undefined,
  });
  return `{"id":"${eventIdOf(shown)}","indexed_at_ms":${shown.ms},"event":${shown.event.toString('utf8')},"metadata":${metadata}}`;
}
