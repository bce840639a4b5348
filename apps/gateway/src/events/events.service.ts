import { Injectable } from '@nestjs/common';
import {
  type EmitterId,
  type EmitterStream,
  type EventPage,
  joinedPageInfo,
  listEvents,
  listStreams,
  type PageRequest,
  type UserId,
} from '#contracts';
import { streamOf } from '#events';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import type { EventPageQuery } from './event.dto.js';

@Injectable()
export class EventsService {
  constructor(
    private readonly messages: Messages,
    private readonly pace: AccountPace,
  ) {}

  /** A page of a stream, as a whole: for a few events. */
  async page(ownerId: UserId, emitterId: EmitterId, query: EventPageQuery): Promise<EventPage> {
    let page: EventPage | undefined;
    for await (const chunk of this.chunks(ownerId, emitterId, query)) page = page ? joined(page, chunk) : chunk;
    return page!;
  }

  /** A page of a stream, in its order and in parts: the store returns at most what fits into one reply. There is at least one, perhaps empty. */
  async *chunks(
    ownerId: UserId,
    emitterId: EmitterId,
    { expand, event_name, limit, after, before }: EventPageQuery,
  ): AsyncGenerator<EventPage> {
    const query = { owner_id: ownerId, emitter_id: emitterId, stream: streamOf(event_name), expand: expand === 'event' };
    const ask = (window: PageRequest) => this.messages.request(listEvents, { ...query, ...window }, { account: ownerId, key: emitterId });
    // the parts before it have cost the account something, and a page may have a hundred megabytes
    const askAgain = async (window: PageRequest) => {
      await this.pace.delayRequest(ownerId, 0);
      return ask(window);
    };
    // an empty cursor counts as absent
    const window: PageRequest = { limit, after: after || undefined, before: before || undefined };
    let chunk = await ask(window);
    let left = limit - chunk.items.length;
    if (window.before !== undefined && window.after === undefined) {
      // towards newer events: their newest part is the first one, and is found last
      let found = chunk.items.length;
      for (; chunk.cut && found < limit; found += chunk.items.length) {
        const newer = await askAgain({ before: chunk.page_info.start_cursor ?? '', limit: limit - found });
        if (newer.items.length === 0) break;
        chunk = newer;
      }
      left = found - chunk.items.length;
      chunk = { ...chunk, cut: left > 0 };
    }
    yield chunk;
    while (chunk.cut && left > 0) {
      chunk = await askAgain({ ...window, after: chunk.page_info.end_cursor ?? '', limit: left });
      if (chunk.items.length === 0) return;
      left -= chunk.items.length;
      yield chunk;
    }
  }

  streams(ownerId: UserId, emitterId: EmitterId): Promise<EmitterStream[]> {
    return this.messages.request(listStreams, { owner_id: ownerId, emitter_id: emitterId }, { account: ownerId, key: emitterId });
  }
}

/** Joins two adjacent pages. */
const joined = (newer: EventPage, older: EventPage): EventPage => ({
  page_info: joinedPageInfo(newer.page_info, older.page_info),
  items: [...newer.items, ...older.items],
});
