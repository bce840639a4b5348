import { Injectable } from '@nestjs/common';
import {
  comparePlaces,
  deletionRecord,
  type EmitterId,
  EVENTS_TOPIC,
  type EventPage,
  type EventPlace,
  type FieldProblem,
  getSource,
  Invalid,
  listEvents,
  parseEventId,
  readableStreamProblem,
  type SourceId,
  type Stream,
  streamOf,
  type UserId,
} from '#contracts';
import { Messages, Publisher } from '#messaging';
import type { DeleteEventsQuery, EventPageQuery } from './event-queries.js';

@Injectable()
export class EventsService {
  constructor(
    private readonly messages: Messages,
    private readonly publisher: Publisher,
  ) {}

  page(ownerId: UserId, emitterId: EmitterId, { expand, event_name, limit, after, before }: EventPageQuery): Promise<EventPage> {
    const stream = readableStream(event_name);
    const query = {
      owner_id: ownerId,
      emitter_id: emitterId,
      stream,
      expand: expand === 'event',
      limit,
      after: after || undefined,
      before: before || undefined,
    };
    return this.messages.request(listEvents, query, { key: emitterId });
  }

  /**
   * Queues the deletion in the log of events itself, behind all that it's about, and returns when Kafka has it: the log
   * then decides what "was there".
   */
  async delete(ownerId: UserId, id: SourceId, { start_id, end_id, event_name }: DeleteEventsQuery): Promise<void> {
    const problems: FieldProblem[] = [];
    const start = place('start_id', start_id, problems);
    const end = place('end_id', end_id, problems);
    if (start && end && comparePlaces(start, end) > 0) problems.push({ field: 'end_id', message: 'end_id must not be before start_id' });
    if (problems.length > 0) throw new Invalid(problems);
    const stream = event_name === undefined ? undefined : readableStream(event_name);
    await this.messages.request(getSource, { owner_id: ownerId, id }, { key: ownerId });
    const record = deletionRecord({ emitterId: id, startId: start ? start_id : undefined, endId: end ? end_id : undefined, stream });
    await this.publisher.send([{ topic: EVENTS_TOPIC, ...record }]);
  }
}

function place(field: string, id: string | undefined, problems: FieldProblem[]): EventPlace | null {
  // an empty value is as if absent
  if (id === undefined || id === '') return null;
  const parsed = parseEventId(id);
  if (!parsed) problems.push({ field, message: `${field} must be an event id, <milliseconds>-<sequence>` });
  return parsed;
}

function readableStream(eventName: string | undefined): Stream {
  const stream = streamOf(eventName);
  const problem = readableStreamProblem(stream);
  if (problem) throw new Invalid([{ field: 'event_name', message: problem }]);
  return stream;
}
