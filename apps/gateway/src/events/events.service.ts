import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import {
  comparePlaces,
  DEFAULT_STREAM,
  deletionRecord,
  type EmitterId,
  EVENTS_TOPIC,
  type EventPage,
  getSource,
  Invalid,
  listEvents,
  type PageRequest,
  parseEventId,
  type SourceId,
  streamOf,
  type UserId,
} from '#contracts';
import { Messages, Publisher } from '#messaging';
import type { DeleteEventsQuery, EventPageQuery } from './event-queries.js';

/** How long a deletion waits for the store to hear of it, and how often that's looked for. */
const FORGOTTEN_IN_MS = 2000;
const FORGOTTEN_LOOK_MS = 20;

@Injectable()
export class EventsService {
  constructor(
    private readonly messages: Messages,
    private readonly publisher: Publisher,
  ) {}

  /** A page of a stream. The store answers as much as goes into one message: what is left is asked for again. */
  async page(ownerId: UserId, emitterId: EmitterId, { expand, event_name, limit, after, before }: EventPageQuery): Promise<EventPage> {
    const query = { owner_id: ownerId, emitter_id: emitterId, stream: streamOf(event_name), expand: expand === 'event' };
    const ask = (window: PageRequest) => this.messages.request(listEvents, { ...query, ...window }, { key: emitterId });
    // an empty cursor is as if absent
    let window: PageRequest = { limit, after: after || undefined, before: before || undefined };
    const towardsNewer = window.before !== undefined && window.after === undefined;
    let page = await ask(window);
    while (page.cut && page.items.length < limit) {
      const { start_cursor, end_cursor } = page.page_info;
      window = {
        ...window,
        limit: limit - page.items.length,
        ...(towardsNewer ? { before: start_cursor ?? '' } : { after: end_cursor ?? '' }),
      };
      const more = await ask(window);
      if (more.items.length === 0) break;
      page = towardsNewer ? joined(more, page, more.cut) : joined(page, more, more.cut);
    }
    return page;
  }

  /** Resolves when the store has heard that the emitter is gone, so that who was told so isn't shown its events; or soon. */
  async untilForgotten(owner_id: UserId, emitter_id: EmitterId): Promise<void> {
    const query = { owner_id, emitter_id, stream: DEFAULT_STREAM, limit: 1 };
    for (const deadline = Date.now() + FORGOTTEN_IN_MS; Date.now() < deadline; await sleep(FORGOTTEN_LOOK_MS)) {
      try {
        await this.messages.request(listEvents, query, { key: emitter_id });
      } catch {
        return;
      }
    }
  }

  /**
   * Queues the deletion in the log of events itself, behind all that it's about, and returns when Kafka has it: the log
   * then decides what "was there".
   */
  async delete(ownerId: UserId, id: SourceId, { start_id, end_id, event_name }: DeleteEventsQuery): Promise<void> {
    const [start, end] = [start_id, end_id].map((id) => (id === undefined ? null : parseEventId(id)));
    if (start && end && comparePlaces(start, end) > 0)
      throw new Invalid([{ field: 'end_id', message: 'end_id must not be before start_id' }]);
    const stream = event_name === undefined ? undefined : streamOf(event_name);
    await this.messages.request(getSource, { owner_id: ownerId, id }, { key: ownerId });
    const record = deletionRecord({ emitterId: id, startId: start_id, endId: end_id, stream });
    await this.publisher.send([{ topic: EVENTS_TOPIC, ...record }]);
  }
}

/** Two neighbouring pages as one. */
const joined = (newer: EventPage, older: EventPage, cut: boolean | undefined): EventPage => ({
  page_info: {
    total_count: newer.page_info.total_count,
    count: newer.items.length + older.items.length,
    start_cursor: newer.page_info.start_cursor,
    end_cursor: older.page_info.end_cursor,
  },
  items: [...newer.items, ...older.items],
  cut,
});
