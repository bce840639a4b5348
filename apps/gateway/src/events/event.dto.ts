import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import type * as contracts from '#contracts';
import type * as events from '#events';
import { ANY_JSON, EVENT_ID, READABLE_EVENT_NAME } from '../http/api-docs.js';
import { PageParameters } from '../http/page.dto.js';
import { IsEventId, IsNotBefore, IsReadableStream } from './event-validators.js';

export class EventMetadata {
  @ApiProperty({ type: String }) emitter_id!: contracts.EmitterId;
  @ApiProperty() emit_id!: string;
  @ApiProperty({ description: 'The name of the stream; empty for the default one.' }) name!: string;
  @ApiPropertyOptional() summary?: string;
  @ApiPropertyOptional({ description: "The emitter's id of the item." }) id?: string;
  @ApiPropertyOptional({ type: 'integer', format: 'int64', description: 'Milliseconds.' }) ts?: number;
}

/** An event as the summaries contain it. */
export class EventSummary implements events.EventSummary {
  @ApiProperty({ example: '1763715600123-40960' }) id!: string;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Milliseconds.' }) indexed_at_ms!: number;
  @ApiProperty({
    ...ANY_JSON,
    description: 'Any JSON value. Without expand=event, an event over 1 KB is an object with its first members and "$truncated": true.',
  })
  event!: unknown;
  @ApiProperty({ type: EventMetadata }) metadata!: EventMetadata;
}

/** A stream of an emitter, as the API returns it. */
export class EmitterStream implements contracts.EmitterStream {
  @ApiProperty({ description: 'Empty for the default stream.' }) event_name!: string;
  @ApiProperty({ type: 'integer', description: 'Events that are kept now.' }) count!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) last_event_at!: number;
}

export class StreamPageQuery extends PageParameters {
  @ApiPropertyOptional({ description: '`event`: return whole events; by default, events over 1 KB are truncated.' })
  @IsOptional()
  @IsString({ message: 'expand must be a string' })
  expand?: string;

  @IsEventId({ orEmpty: true })
  override after?: string;

  @IsEventId({ orEmpty: true })
  override before?: string;
}

export class EventPageQuery extends StreamPageQuery {
  @ApiPropertyOptional({
    ...READABLE_EVENT_NAME,
    description:
      'A stream other than the default one: `$errors`, `$logs`, `$in`, a custom name, or `*` for the default one and all custom ones together.',
  })
  @IsOptional()
  @IsReadableStream()
  event_name?: string;
}

/** In a body, null counts as absent. */
export class DeleteEventsQuery {
  @ApiPropertyOptional({ ...EVENT_ID, type: String, description: 'The first event to delete, inclusive; default: the oldest.' })
  @IsOptional()
  @IsEventId()
  start_id?: string | null;

  @ApiPropertyOptional({ ...EVENT_ID, type: String, description: 'The last event to delete, inclusive; default: the newest.' })
  @IsOptional()
  @IsEventId()
  @IsNotBefore('start_id')
  end_id?: string | null;

  @ApiPropertyOptional({
    ...READABLE_EVENT_NAME,
    type: String,
    description: 'The stream, or `*` for the default one and all custom ones; default: every stream.',
  })
  @IsOptional()
  @IsReadableStream()
  event_name?: string | null;
}
