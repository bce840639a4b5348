import type { EventPage } from '#contracts';
import { eventIdOf, type EventPlace, type EventSummary, parseEventId, summaryFields } from '#events';
import type { LiveClient } from './live-client.js';
import { isBelow, type Seam } from './live-hub.js';

/** The client's stream in the store. */
export interface StoredStream {
  /** Resolves when the store has processed the emitter's records below the seam. */
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
 * Sends the events that a client has missed since `after`, then switches it to live. The seam divides the log: events below it, and those of a log that
 * was lost, come only from the store, the others only from the log. So nothing is missed or sent twice, however far the store is behind or ahead.
 *
 * A client that reconnects often makes progress only while it is connected, so this uses as few round trips as possible.
 */
export async function catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  await stored.reached(seam);
  const fromStore = ({ place }: StoredEvent) => isBelow(seam, place);
  const pages = pagesSince(after, stored, client.expand);
  const [received, first] = await Promise.all([receivedUntil(after, stored), pages.next()]);
  // a producer may still repeat one of them
  for (const event of received.filter(fromStore)) client.knows(event.summary);
  const missed = new Map<string, number>();
  let isRemarked = false;
  for (let page = first; !page.done; page = await pages.next()) {
    for (const event of page.value) {
      const { name } = event.summary.metadata;
      missed.set(name, (missed.get(name) ?? 0) + 1);
      if (fromStore(event)) client.sendStored(event.summary, event.json);
    }
    if (!isRemarked && [...missed.values()].some((count) => count >= ALL)) {
      client.remark('only the last 100 events are kept: there may have been more');
      isRemarked = true;
    }
    await client.drained();
  }
  await client.goLive();
}

/** The events that the client had received when it received this one, oldest first: as many as a producer may repeat. Truncated. */
async function receivedUntil(after: EventPlace, stored: StoredStream): Promise<StoredEvent[]> {
  const received: StoredEvent[] = [];
  for (let cursor: string | null = eventIdOf(justAfter(after)); cursor !== null && received.length < ALL;) {
    const limit = ALL - received.length;
    const { items, page_info, cut }: EventPage = await stored.page({ limit, after: cursor }, false);
    received.push(...items.map(read));
    cursor = cut || items.length === limit ? page_info.end_cursor : null;
  }
  return received.reverse();
}

/** The place is valid, too. */
const justAfter = ({ ms, seq }: EventPlace): EventPlace => ({ ms, seq: Math.min(seq + 1, Number.MAX_SAFE_INTEGER) });

/** The events since then, oldest first, in pages: `*` may cover more events than fit into memory at once. */
async function* pagesSince(after: EventPlace, stored: StoredStream, expand: boolean): AsyncGenerator<StoredEvent[], undefined> {
  for (let cursor = eventIdOf(after); ;) {
    const { items, page_info, cut } = await stored.page({ limit: ALL, before: cursor }, expand);
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
