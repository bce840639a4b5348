import { Invalid } from '#contracts';
import { type EventPlace, parseEventId } from '#events';

/**
 * The event after which a stream resumes; null: start with new events. The header takes precedence: a client that reconnects automatically sends it
 * with its original URL. An empty value counts as absent. Throws Invalid.
 */
export function resumePlace(lastEventId: string | undefined, after: string | undefined): EventPlace | null {
  const [field, id] = lastEventId ? ['Last-Event-ID', lastEventId] : ['after', after];
  if (!id) return null;
  const place = parseEventId(id);
  if (!place) throw new Invalid([{ field: field ?? '', message: `${field} must be an event id, <milliseconds>-<sequence>` }]);
  return place;
}
