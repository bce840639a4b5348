import { type EmittedEvent, eventIdOf, eventSummaryJson, truncateEvent, WHOLE_UP_TO } from '#events';
import type { RecentDeletions } from './recent-deletions.js';
import { Emit } from './recent-emits.js';

/** The parts of an event that a client needs. They do not keep the event itself in memory. */
export interface FramedEmit {
  emit: Emit;
  frame: Buffer;
  /** Those of its emitter. */
  deletions: RecentDeletions;
}

/** An event on its way to the clients of its stream. Each of its two forms is built once for all clients. */
export class LiveEvent {
  readonly emit: Emit;
  private short: FramedEmit | undefined;
  private whole: FramedEmit | undefined;

  constructor(
    readonly emitted: EmittedEvent,
    readonly deletions: RecentDeletions,
  ) {
    this.emit = new Emit(emitted.stream, emitted.emitId, emitted.place);
  }

  framed(expand: boolean): FramedEmit {
    if (expand || this.emitted.json.length <= WHOLE_UP_TO) return (this.whole ??= this.write(this.emitted.json));
    return (this.short ??= this.write(truncateEvent(this.emitted.json)));
  }

  private write(event: Buffer): FramedEmit {
    const { place, emitterId, stream, emitId, summary, itemId, itemTs } = this.emitted;
    const shown = { ...place, stream, emit_id: emitId, event, summary: summary ?? null, item_id: itemId ?? null, item_ts: itemTs ?? null };
    const { emit, deletions } = this;
    return { emit, deletions, frame: eventFrame(eventIdOf(place), eventSummaryJson(emitterId, shown)) };
  }
}

const LINE_END = /\r\n|\r|\n/;

/** An event as a frame of Server-Sent Events. The client joins the lines of `data` by \n, which in JSON can only be white space between tokens. */
export function eventFrame(id: string, json: string): Buffer {
  const data = LINE_END.test(json) ? json.split(LINE_END).join('\ndata: ') : json;
  return Buffer.from(`id: ${id}\ndata: ${data}\n\n`);
}

/** A comment, which clients ignore. */
export const commentFrame = (text: string): Buffer => Buffer.from(`: ${text}\n\n`);
