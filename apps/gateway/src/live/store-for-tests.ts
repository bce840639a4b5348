import type { Scheduler } from 'fast-check';
import type { EmitterId, EventPage } from '#contracts';
import {
  comparePlaces,
  eventIdOf,
  type EventLogRecord,
  eventPlace,
  eventSummaryJson,
  isInRange,
  MAX_EVENT_BYTES,
  parseEventId,
  readEventRecord,
} from '#events';
import type { StoredStream } from './catch-up.js';
import type { Seam } from './live-hub.js';

interface Stored {
  id: string;
  json: string;
  emitId: string;
  stream: string;
}

/** A stream, or `*`, in a slow store: the scheduler decides when it replies. */
export class StoreForTests implements StoredStream {
  private stored: Stored[] = [];
  private readonly offsets = new Map<number, number>();
  private wakers: (() => void)[] = [];
  /** The number of requested pages. */
  pages = 0;

  constructor(
    private readonly emitterId: EmitterId,
    private readonly scheduler: Scheduler | undefined,
    private readonly options: { perPage: number; kept?: number },
  ) {}

  take(records: EventLogRecord[]): void {
    for (const record of records) {
      const [place, emitId] = [eventPlace(record), record.header('ce_id') ?? ''];
      this.offsets.set(record.partition, record.offset + 1);
      const operation = readEventRecord(record, { maxBytes: MAX_EVENT_BYTES });
      if (operation.kind === 'delete')
        this.stored = this.stored.filter(({ id, stream }) => !isInRange(operation, stream, parseEventId(id)!));
      if (operation.kind !== 'event') continue;
      const { stream } = operation;
      if (this.stored.some((each) => each.emitId === emitId && each.stream === stream)) continue;
      const shown = { ...place, stream, emit_id: emitId, event: record.value!, summary: null, item_id: null, item_ts: null };
      this.stored.push({ id: eventIdOf(place), emitId, stream, json: eventSummaryJson(this.emitterId, shown) });
      if (this.stored.length > (this.options.kept ?? 100)) this.stored.shift();
    }
    for (const waker of this.wakers.splice(0)) waker();
  }

  async reached(seam: Seam): Promise<boolean> {
    const isBehind = [...seam].some(([partition, { offset }]) => (this.offsets.get(partition) ?? 0) < offset);
    // it shows what it has with each record that it takes meanwhile
    if (isBehind) await new Promise<void>((resolve) => this.wakers.push(resolve));
    await this.later();
    return !isBehind;
  }

  async page({ limit, after, before }: { limit: number; after?: string; before?: string }): Promise<EventPage> {
    this.pages++;
    await this.later();
    const compared = (id: string, cursor: string) => comparePlaces(parseEventId(id)!, parseEventId(cursor)!);
    const window = this.stored.filter(({ id }) => (!after || compared(id, after) < 0) && (!before || compared(id, before) > 0));
    const wanted = before ? window.slice(0, limit) : window.slice(-limit);
    const shown = (before ? wanted.slice(0, this.options.perPage) : wanted.slice(-this.options.perPage)).toReversed();
    return {
      page_info: {
        total_count: this.stored.length,
        count: shown.length,
        start_cursor: shown[0]?.id ?? null,
        end_cursor: shown.at(-1)?.id ?? null,
      },
      items: shown.map(({ json }) => json),
      ...(shown.length < wanted.length && { cut: true }),
    };
  }

  private async later(): Promise<void> {
    await this.scheduler?.schedule(Promise.resolve());
  }
}
