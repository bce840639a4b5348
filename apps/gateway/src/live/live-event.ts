import { type EmittedEvent, eventIdOf, eventSummaryJson, truncateEvent, WHOLE_UP_TO } from '#events';
import { eventFrame } from './sse-frame.js';

/** An event on its way to the clients of its stream. Each of its two frames is built once for all clients. */
export class LiveEvent {
  private short: Buffer | undefined;
  private whole: Buffer | undefined;

  constructor(readonly emitted: EmittedEvent) {}

  frame(expand: boolean): Buffer {
    if (expand || this.emitted.json.length <= WHOLE_UP_TO) return (this.whole ??= this.write(this.emitted.json));
    return (this.short ??= this.write(truncateEvent(this.emitted.json)));
  }

  private write(event: Buffer): Buffer {
    const { place, emitterId, stream, emitId, summary, itemId, itemTs } = this.emitted;
    const shown = { ...place, stream, emit_id: emitId, event, summary: summary ?? null, item_id: itemId ?? null, item_ts: itemTs ?? null };
    return eventFrame(eventIdOf(place), eventSummaryJson(emitterId, shown));
  }
}
