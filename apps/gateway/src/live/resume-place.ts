import { Invalid } from '#contracts';
import { type EventPlace, parseEventId } from '#events';

/**
 * After which event a stream is taken up again; null: from now on. The header wins: a client that reconnects by itself sends
 * it with the address that it began with. Empty is as if absent. Throws Invalid.
 */
export function resumePlace(lastEventId: string | undefined, after: string | undefined): EventPlace | null {
  const [field, id] = lastEventId ? ['Last-Event-ID', lastEventId] : ['after', after];
  if (!id) return null;
  const place = parseEventId(id);
  if (!place) throw new Invalid([{ field: field ?? '', message: `${field} must be an event id, <milliseconds>-<sequence>` }]);
  return place;
}
