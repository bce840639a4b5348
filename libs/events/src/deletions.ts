import type { EventDeletion } from '#contracts';
import { comparePlaces, type EventPlace, parseEventId } from './event-id.js';
import { coversStream, type Stream } from './streams.js';

/** Whether a deletion covers this place, whatever the stream: what was emitted after it is not deleted by it. */
export function coversPlace({ start_id, end_id, at_id }: Omit<EventDeletion, 'stream'>, place: EventPlace): boolean {
  const [start, end, at] = [start_id, end_id, at_id].map((id) => (id === null ? null : parseEventId(id)));
  return (!start || comparePlaces(start, place) <= 0) && (!end || comparePlaces(place, end) <= 0) && (!at || comparePlaces(place, at) < 0);
}

/** Whether one of the deletions has deleted an event of this stream at this place. */
export const isDeleted = (deletions: readonly EventDeletion[], stream: Stream, place: EventPlace): boolean =>
  deletions.some((deletion) => (deletion.stream === null || coversStream(deletion.stream, stream)) && coversPlace(deletion, place));
