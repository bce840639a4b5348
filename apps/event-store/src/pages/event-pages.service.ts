import { Injectable } from '@nestjs/common';
import {
  type EmitterId,
  type EmitterReference,
  type EmitterStream,
  type EventDeletion,
  type EventPage,
  type FieldProblem,
  type FindEvent,
  Invalid,
  type ListDeletions,
  type ListEvents,
  pageOf,
  type PageRequest,
  SluiceError,
  type StoredEvent,
} from '#contracts';
import { AFTER_ALL, BEFORE_ALL, eventIdOf, type EventPlace, eventSummaryJson, parseEventId, requireEventId } from '#events';
import { EmitterDirectory } from '#emitters';
import { StoreProgress } from '../append/store-progress.js';
import { EventPagesRepository, type PageWindow } from './event-pages.repository.js';

/**
 * The maximum size of the events in one reply; a single event may be larger. As JSON within JSON it can be seven times as much, because a control character of a
 * summary takes 7 bytes. A reply may have 16 MiB, which the gateway holds in memory for one request.
 */
const PAGE_BYTES = 1024 * 1024;
/** In one reply: about 8 MiB. */
const MOST_DELETIONS = 50_000;

/** Returns pages of an emitter's last events. */
@Injectable()
export class EventPagesService {
  constructor(
    private readonly directory: EmitterDirectory,
    private readonly pages: EventPagesRepository,
    private readonly progress: StoreProgress,
  ) {}

  async list({ owner_id, emitter_id, stream, expand = false, ...request }: ListEvents): Promise<EventPage> {
    const window = pageWindow(request);
    await this.directory.requireOwned(owner_id, emitter_id);
    const { total, events, cut } = await this.pages.page(emitter_id, stream, window, { whole: expand, maxBytes: PAGE_BYTES });
    const { page_info } = pageOf(events, total, eventIdOf);
    return { page_info, items: events.map((event) => eventSummaryJson(emitter_id, event)), ...(cut && { cut }) };
  }

  /** deadline: when the caller stops waiting for the store to read the log, in ms since the epoch. */
  async find({ owner_id, emitter_id, event_id, may_lag = false }: FindEvent, deadline: number): Promise<StoredEvent> {
    const place = requireEventId(event_id);
    await this.directory.requireOwned(owner_id, emitter_id);
    if (!may_lag) await this.progress.reachEnd(deadline, [emitter_id]);
    const [found, deletions] = await Promise.all([this.pages.find(emitter_id, place), this.deletionsBetween(emitter_id, place, place)]);
    return {
      event: found ? { stream: found.stream, emit_id: found.emit_id, json: found.event.toString('utf8') } : null,
      deletions,
    };
  }

  /** deadline: as above. */
  async deletions(
    { owner_id, emitter_id, from_id = '', to_id = '', after_id = '' }: ListDeletions,
    deadline: number,
  ): Promise<EventDeletion[]> {
    await this.directory.requireOwned(owner_id, emitter_id);
    await this.progress.reachEnd(deadline, [emitter_id]);
    // first: the others include each one up to it
    const last = await this.pages.lastDeletion(emitter_id);
    const [from, to] = [parseEventId(from_id) ?? BEFORE_ALL, parseEventId(to_id) ?? AFTER_ALL];
    const deletions = await this.deletionsBetween(emitter_id, from, to, parseEventId(after_id) ?? BEFORE_ALL);
    return last ? [...deletions, last] : deletions;
  }

  async streams({ owner_id, emitter_id }: EmitterReference): Promise<EmitterStream[]> {
    await this.directory.requireOwned(owner_id, emitter_id);
    return this.pages.streams(emitter_id);
  }

  private async deletionsBetween(emitterId: EmitterId, from: EventPlace, to: EventPlace, after?: EventPlace): Promise<EventDeletion[]> {
    const deletions = await this.pages.deletions(emitterId, from, to, MOST_DELETIONS + 1, after);
    if (deletions.length > MOST_DELETIONS)
      throw new SluiceError('unprocessable', `more than ${MOST_DELETIONS} different deletions concern these events`);
    return deletions;
  }
}

/**
 * The part of the stream that the cursors of a request select. Events are newest first, so `after` walks to older events and `before` to newer ones;
 * `before` alone selects the events directly before the cursor. Cursors are places, whose events need not exist.
 */
export function pageWindow({ limit, after, before }: Pick<PageRequest, 'limit' | 'after' | 'before'>): PageWindow {
  const problems: FieldProblem[] = [];
  const place = (field: 'after' | 'before', cursor: string | undefined): EventPlace | null => {
    if (cursor === undefined) return null;
    const parsed = parseEventId(cursor);
    if (!parsed) problems.push({ field, message: `${field} must be the id of an event` });
    return parsed;
  };
  const [older, newer] = [place('after', after), place('before', before)];
  if (problems.length > 0) throw new Invalid(problems);
  return { olderThan: older ?? AFTER_ALL, newerThan: newer ?? BEFORE_ALL, from: newer && !older ? 'oldest' : 'newest', limit };
}
