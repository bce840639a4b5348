import type { EventPage } from '#contracts';
import { comparePlaces, eventIdOf, type EventPlace, type EventSummary, logPlaceOf, parseEventId, summaryFields } from '#events';
import type { LiveClient } from './live-client.js';
import { isBelow, type Seam } from './live-hub.js';

/** The client's stream in the store. */
export interface StoredStream {
  /** Resolves when the store has processed all records below the seam. */
  reached(seam: Seam): Promise<void>;
  page(window: { limit: number; after?: string; before?: string }, expand: boolean): Promise<EventPage>;
}

/** The store keeps at most this many events of a stream. */
const ALL = 100;

interface StoredEvent {
  place: EventPlace;
  summary: Pick<EventSummary, 'id' | 'metadata'>;
  json: string;
}

/**
 * Sends the events that a client has missed since `after`, then switches it to live. The seam divides the log: events below it come only from the
 * store, the others only from the log. So nothing is missed or sent twice, however far the store is behind or ahead.
 *
 * A client that reconnects often makes progress only while it is connected, so this uses as few round trips as possible.
 */
export async function catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  await stored.reached(seam);
  const kept = (await keptAround(after, stored)).reverse();
  const isMissed = ({ place }: StoredEvent) => comparePlaces(place, after) > 0;
  const fromStore = ({ place }: StoredEvent) => isBelow(seam, logPlaceOf(place));
  // events that it has received before it connected here: a producer may still repeat one of them
  for (const event of kept) if (!isMissed(event) && fromStore(event)) client.knows(event.summary);
  const missed = kept.filter(isMissed);
  const byStream = Map.groupBy(missed, ({ summary }) => summary.metadata.name);
  if ([...byStream.values()].some((events) => events.length >= ALL))
    client.remark('only the last 100 events are kept: there may have been more');
  for await (const events of client.expand ? wholeSince(after, stored) : [missed]) {
    for (const { summary, json } of events.filter(fromStore)) client.sendStored(summary, json);
    await client.drained();
  }
  client.goLive();
}

/**
 * The stored events, newest first, truncated: all that were missed, and before them as many as a producer may repeat. For one stream that is
 * all of them; `*` may cover more streams than fit into memory at once.
 */
async function keptAround(after: EventPlace, stored: StoredStream): Promise<StoredEvent[]> {
  const kept: StoredEvent[] = [];
  for (let cursor: string | undefined; ;) {
    const { items, page_info } = await stored.page({ limit: ALL, after: cursor }, false);
    kept.push(...items.map(read));
    const seen = kept.filter(({ place }) => comparePlaces(place, after) <= 0);
    if (page_info.end_cursor === null || kept.length >= page_info.total_count || seen.length >= ALL) return kept;
    cursor = page_info.end_cursor;
  }
}

/** The complete events since then, oldest first, in pages because together they may be large. */
async function* wholeSince(after: EventPlace, stored: StoredStream): AsyncGenerator<StoredEvent[]> {
  for (let cursor = eventIdOf(after); ;) {
    const { items, page_info, cut } = await stored.page({ limit: ALL, before: cursor }, true);
    yield items.map(read).reverse();
    if ((!cut && items.length < ALL) || page_info.start_cursor === null) return;
    cursor = page_info.start_cursor;
  }
}

function read(json: string): StoredEvent {
  const fields = summaryFields(json);
  const summary = { id: JSON.parse(fields.id) as string, metadata: JSON.parse(fields.metadata) as EventSummary['metadata'] };
  const place = parseEventId(summary.id);
  if (!place) throw new Error(`the store shows an event with the id ${summary.id}`);
  return { place, summary, json };
}
