import type { EventPage } from '#contracts';
import { comparePlaces, eventIdOf, type EventPlace, type EventSummary, parseEventId, type Stream, summaryFields } from '#events';
import { MAX_EMITS_OF_ONE } from './account-streams.js';
import type { LiveClient } from './live-client.js';
import { isBelow, type Seam } from './live-hub.js';

/** The client's stream in the store. */
export interface StoredStream {
  /** Resolves to true when the store has processed the emitter's records below the seam; to false if that takes long. */
  reached(seam: Seam): Promise<boolean>;
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
 * A client that reconnects often makes progress only while it is connected, so this uses as few round trips as possible. While the store is behind, the
 * client gets what is stored: if too many events wait for it meanwhile, it resumes after those.
 */
export async function catchUp(client: LiveClient, after: EventPlace, seam: Seam, stored: StoredStream): Promise<void> {
  let last = after;
  for (let isReached = false; !isReached;) {
    isReached = await stored.reached(seam);
    last = await sendMissed(client, last, seam, stored, { begunAfter: isReached ? after : null });
  }
  await client.goLive();
}

/**
 * Sends the events below the seam that are stored now. Returns the place of the last stored event.
 *
 * @param begunAfter the event after which the client resumed, when the store has reached the seam; until then null
 */
async function sendMissed(
  client: LiveClient,
  after: EventPlace,
  seam: Seam,
  stored: StoredStream,
  { begunAfter }: { begunAfter: EventPlace | null },
): Promise<EventPlace> {
  const fromStore = ({ place }: StoredEvent) => isBelow(seam, place);
  const pages = pagesSince(after, stored, client.expand);
  const [received, first] = await Promise.all([begunAfter ? receivedUntil(after, begunAfter, stored) : [], pages.next()]);
  // a producer may still repeat one of them
  for (const event of received.filter(fromStore)) client.knows(event.summary);
  const missed = new MissedEvents(client);
  let [last, pageCount] = [after, 0];
  for (let page = first; !page.done; page = await pages.next(), pageCount++) {
    // before they are sent: a client that disconnects in between resumes after one of them, and would not get the remark
    for (const { summary } of page.value) missed.add(summary.metadata.name);
    for (const event of page.value) {
      last = event.place;
      if (!fromStore(event)) continue;
      client.sendStored(event.summary, event.json);
      if (begunAfter) client.knows(event.summary);
    }
    await client.drained();
  }
  // while it read further pages, the store may have removed events of them, because others followed
  const end = pageCount > 1 ? await newest(stored) : null;
  if (end && comparePlaces(end, last) > 0) {
    if (isBelow(seam, end) || !(await isSoon(client.took(end)))) missed.remark();
    else for (const { emit } of client.waits) if (comparePlaces(emit.place, last) > 0) missed.add(emit.stream);
  }
  return last;
}

/** Counts the events of each stream that a client has missed, to remark once that there may have been more than the store keeps. */
class MissedEvents {
  private readonly streams = new Map<Stream, number>();
  private isRemarked = false;

  constructor(private readonly client: LiveClient) {}

  add(stream: Stream): void {
    const events = (this.streams.get(stream) ?? 0) + 1;
    this.streams.set(stream, events);
    if (events >= ALL) this.remark();
  }

  remark(): void {
    if (!this.isRemarked) this.client.remarkGap();
    this.isRemarked = true;
  }
}

/** Resolves to false if the promise takes longer. StorePositions waits for other partitions for almost as long. */
const SOON_MS = 2500;

export function isSoon(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, SOON_MS, false).unref())]);
}

/**
 * The events that the client had received when it received this one, oldest first: those that it received since it resumed, and as many before as a producer may
 * repeat. These are the stored ones, unless `*` covers more than a client remembers: then, they are the last 100. Truncated.
 */
async function receivedUntil(last: EventPlace, begunAfter: EventPlace, stored: StoredStream): Promise<StoredEvent[]> {
  const received: StoredEvent[] = [];
  let before = 0;
  for (let cursor: string | null = eventIdOf(justAfter(last)); cursor !== null;) {
    const { items, page_info, cut }: EventPage = await stored.page({ limit: ALL, after: cursor }, false);
    const page = items.map(read);
    received.push(...page);
    before += page.filter(({ place }) => comparePlaces(place, begunAfter) <= 0).length;
    const { total_count: total } = page_info;
    const isEnough = total > MAX_EMITS_OF_ONE ? before >= ALL || received.length >= MAX_EMITS_OF_ONE : received.length >= total;
    cursor = !isEnough && (cut || items.length === ALL) ? page_info.end_cursor : null;
  }
  return received.reverse();
}

/** The place is valid, too. */
const justAfter = ({ ms, seq }: EventPlace): EventPlace => ({ ms, seq: Math.min(seq + 1, Number.MAX_SAFE_INTEGER) });

/**
 * The events since then that are stored when it begins, oldest first, in pages: `*` may cover more events than fit into memory at once. It does not end at
 * the last stored event, because a busy emitter stores events faster than this reads them.
 */
async function* pagesSince(after: EventPlace, stored: StoredStream, expand: boolean): AsyncGenerator<StoredEvent[], undefined> {
  let end: EventPlace | null | undefined;
  for (let cursor = after; ;) {
    const { items, cut } = await stored.page({ limit: ALL, before: eventIdOf(cursor) }, expand);
    const page = items.map(read).reverse();
    yield page;
    const last = page.at(-1);
    if (!last || (!cut && page.length < ALL)) return;
    if (end === undefined) end = await newest(stored);
    if (end === null || comparePlaces(last.place, end) >= 0) return;
    cursor = last.place;
  }
}

async function newest(stored: StoredStream): Promise<EventPlace | null> {
  const { items } = await stored.page({ limit: 1 }, false);
  return items[0] === undefined ? null : read(items[0]).place;
}

function read(json: string): StoredEvent {
  const fields = summaryFields(json);
  const summary = { id: JSON.parse(fields.id) as string, metadata: JSON.parse(fields.metadata) as EventSummary['metadata'] };
  const place = parseEventId(summary.id);
  if (!place) throw new Error(`the store shows an event with the id ${summary.id}`);
  return { place, summary, json };
}
