import { eventIdOf } from './event-id.js';
import type { EmitterId } from './ids.js';
import type { Stream } from './streams.js';

/** An event as a page shows it. */
export interface ShownEvent {
  stream: Stream;
  ms: number;
  seq: number;
  emit_id: string;
  /** Its JSON, whole or truncated. */
  event: Buffer;
  summary: string | null;
  item_id: string | null;
  item_ts: number | null;
}

/**
 * The JSON text of an EventSummary; the event goes into it as it was emitted, unparsed.
 *
 * `indexed_at_ms` is when the log took the event, the time of its id: so the live stream, which never asks the store,
 * shows the same, and reading an event twice gives one answer even when the store took it in twice.
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
