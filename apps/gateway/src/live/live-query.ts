import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { ApiPropertyOptional, PickType } from '@nestjs/swagger';
import { IsOptional } from 'class-validator';
import { type EventPlace, parseEventId, requireEventId } from '#events';
import { IsEventId } from '../events/event-validators.js';
import { EventPageQuery } from '../events/event.dto.js';

/** `event_name` has the same values as for pages of events. */
export class LiveQuery extends PickType(EventPageQuery, ['expand', 'event_name'] as const) {
  @ApiPropertyOptional({
    description:
      'The id of an event: start with the events after it. One in the future counts as absent, and a comment reports that there may have been more events. The header Last-Event-ID takes precedence.',
  })
  @IsOptional()
  @IsEventId({ orEmpty: true })
  after?: string;
}

/** The event id in the header Last-Event-ID, which may be empty. Throws Invalid. */
export function lastEventIdOf(header: string | undefined): string | undefined {
  if (header) requireEventId(header, 'Last-Event-ID');
  return header;
}

/** The header Last-Event-ID. It is checked here, because in the handler, a malformed id in the path would take precedence. */
export const LastEventId = createParamDecorator((_: unknown, context: ExecutionContext): string | undefined =>
  lastEventIdOf(context.switchToHttp().getRequest<IncomingMessage>().headers['last-event-id'] as string | undefined),
);

/**
 * The event after which a stream resumes; null: start with new events. The header takes precedence: a client that reconnects automatically sends it
 * with its original URL. An empty value counts as absent.
 */
export const resumePlace = (lastEventId: string | undefined, after: string | undefined): EventPlace | null =>
  parseEventId(lastEventId || after || '');
