import { ApiPropertyOptional, PickType } from '@nestjs/swagger';
import { IsOptional } from 'class-validator';
import { EventPageQuery } from '../events/event.dto.js';
import { IsEventId } from '../events/event-validators.js';

/** `event_name` has the same values as for pages of events. */
export class LiveQuery extends PickType(EventPageQuery, ['expand', 'event_name'] as const) {
  @ApiPropertyOptional({ description: 'The id of an event: start with the events after it. The header Last-Event-ID takes precedence.' })
  @IsOptional()
  @IsEventId({ orEmpty: true })
  after?: string;
}
