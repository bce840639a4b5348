import { Injectable } from '@nestjs/common';
import {
  type EmitterId,
  type EmitterStream,
  type EventPage,
  EVENTS_TOPIC,
  getSource,
  Invalid,
  listEvents,
  listStreams,
  type PageRequest,
  type SourceId,
  type UserId,
} from '#contracts';
import { comparePlaces, deletionRecord, parseEventId, streamOf } from '#events';
import { Messages, Publisher } from '#messaging';
import type { DeleteEventsQuery, EventPageQuery } from './event.dto.js';

@Injectable()
export class EventsService {
  constructor(
    private readonly messages: Messages,
    private readonly publisher: Publisher,
  ) {}

  /** A page of a stream. The store returns at most what fits into one message; the rest takes further requests. */
  async page(ownerId: UserId, emitterId: EmitterId, { expand, event_name, limit, after, before }: EventPageQuery): Promise<EventPage> {
    const query = { owner_id: ownerId, emitter_id: emitterId, stream: streamOf(event_name), expand: expand === 'event' };
    const ask = (window: PageRequest) => this.messages.request(listEvents, { ...query, ...window }, { key: emitterId });
    // an empty cursor counts as absent
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

  streams(ownerId: UserId, emitterId: EmitterId): Promise<EmitterStream[]> {
    return this.messages.request(listStreams, { owner_id: ownerId, emitter_id: emitterId }, { key: emitterId });
  }

  /**
   * Queues the deletion in the topic of the events, behind every event that it concerns, and returns when Kafka has
   * acknowledged it. The order of the topic decides which events were emitted before.
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

/** Joins two adjacent pages. */
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
