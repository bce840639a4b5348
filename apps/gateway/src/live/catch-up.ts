import { comparePlaces, eventIdOf, type EventPage, type EventPlace, type EventSummary, logPlaceOf, parseEventId } from '#contracts';
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

/**
 * Sends what a client has missed since `after`, then lets it go live. The seam divides the log: what is below it comes from
 * the store and from nowhere else, the rest from the log. So nothing is missed and nothing comes twice, however far
 * the store lags behind us or is ahead.
 */
export async function catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  await stored.reached(seam);
  await recall(client, after, seam, stored);
  for (let cursor = eventIdOf(after); ;) {
    const { items, page_info, cut } = await stored.page({ limit: ALL, before: cursor }, client.expand);
    for (const json of items.toReversed()) {
      const summary = JSON.parse(json) as EventSummary;
      if (isBelow(seam, logPlaceOf(placeOf(summary)))) client.sendStored(summary, json);
    }
    await client.drained();
    if (!cut || page_info.start_cursor === null) break;
    cursor = page_info.start_cursor;
  }
  client.goLive();
}

/** Tells the client's memory of emits what it has seen before it came to us: one of them may be repeated from now on. */
async function recall(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  let newer = 0;
  for (let cursor: string | undefined; ;) {
    const { items, page_info, cut } = await stored.page({ limit: ALL, after: cursor }, false);
    for (const json of items) {
      const summary = JSON.parse(json) as EventSummary;
      const place = placeOf(summary);
      if (comparePlaces(place, after) > 0) newer += 1;
      else if (isBelow(seam, logPlaceOf(place))) client.knows(summary);
    }
    if (!cut || page_info.end_cursor === null) break;
    cursor = page_info.end_cursor;
  }
  if (newer >= ALL) client.remark('only the last 100 events are kept: there may have been more');
}

function placeOf({ id }: EventSummary): EventPlace {
  const place = parseEventId(id);
  if (!place) throw new Error(`the store shows an event with the id ${id}`);
  return place;
}
