import type { EventPage } from '#contracts';
import { comparePlaces, eventIdOf, type EventPlace, type EventSummary, logPlaceOf, parseEventId } from '#events';
import type { LiveClient } from './live-client.js';
import { isBelow, type Seam } from './live-hub.js';

/** The client's stream in the store. */
export interface StoredStream {
  /** Resolves when the store has taken in all below the seam. */
  reached(seam: Seam): Promise<void>;
  page(window: { limit: number; after?: string; before?: string }, expand: boolean): Promise<EventPage>;
}

/** As many as are kept. */
const ALL = 100;

interface StoredEvent {
  place: EventPlace;
  summary: EventSummary;
  json: string;
}

/**
 * Sends what a client has missed since `after`, then lets it go live. The seam divides the log: what is below it comes from
 * the store and from nowhere else, the rest from the log. So nothing is missed and nothing comes twice, however far
 * the store lags behind us or is ahead.
 *
 * A client that comes back all the time gets on only while it's connected: so this takes no more round trips than it must.
 */
export async function catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  await stored.reached(seam);
  const kept = (await keptAround(after, stored)).reverse();
  const isMissed = ({ place }: StoredEvent) => comparePlaces(place, after) > 0;
  const fromStore = ({ place }: StoredEvent) => isBelow(seam, logPlaceOf(place));
  // what it has seen before it came to us: a producer may repeat one of them yet
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
 * What the store keeps, newest first, each shortened: all that was missed, and before it as many as a producer may repeat. Of one stream that is
 * everything; `*` may stand for more streams than are held at once.
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

/** The events since then as a whole, oldest first, in as many pages as it takes: together they may be large. */
async function* wholeSince(after: EventPlace, stored: StoredStream): AsyncGenerator<StoredEvent[]> {
  for (let cursor = eventIdOf(after); ;) {
    const { items, page_info, cut } = await stored.page({ limit: ALL, before: cursor }, true);
    yield items.map(read).reverse();
    if ((!cut && items.length < ALL) || page_info.start_cursor === null) return;
    cursor = page_info.start_cursor;
  }
}

function read(json: string): StoredEvent {
  const summary = JSON.parse(json) as EventSummary;
  const place = parseEventId(summary.id);
  if (!place) throw new Error(`the store shows an event with the id ${summary.id}`);
  return { place, summary, json };
}
