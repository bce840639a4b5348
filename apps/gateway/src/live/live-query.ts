import { ApiPropertyOptional, PickType } from '@nestjs/swagger';
import { IsOptional } from 'class-validator';
import { Invalid } from '#contracts';
import { type EventPlace, parseEventId } from '#events';
import { IsEventId } from '../events/event-validators.js';
import { EventPageQuery } from '../events/event.dto.js';

/** `event_name` has the same values as for pages of events. */
export class LiveQuery extends PickType(EventPageQuery, ['expand', 'event_name'] as const) {
  @ApiPropertyOptional({
    description:
      'The id of an event: start with the events after it; one in the future counts as absent. The header Last-Event-ID takes precedence.',
  })
  @IsOptional()
  @IsEventId({ orEmpty: true })
  after?: string;
}

/** How far the clocks of the brokers may be ahead. */
const SKEW_MS = 5 * 60_000;

/**
 * The event after which a stream resumes; null: start with new events. The header takes precedence: a client that reconnects automatically sends it
 * with its original URL. An empty value counts as absent, and so does one in the future, which would hide all events until then. Throws Invalid.
 */
export function resumePlace(lastEventId: string | undefined, after: string | undefined): EventPlace | null {
  const [field, id] = lastEventId ? ['Last-Event-ID', lastEventId] : ['after', after];
  if (!id) return null;
  const place = parseEventId(id);
  if (!place) throw new Invalid([{ field: field ?? '', message: `${field} must be an event id, <milliseconds>-<sequence>` }]);
  return place.ms > Date.now() + SKEW_MS ? null : place;
}
