import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import { PageRequest } from '#contracts';
import { IsEventId, IsReadableStream } from './event-validators.js';

export class StreamPageQuery extends PageRequest {
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
    description:
      'A stream other than the default one: `$errors`, `$logs`, `$in`, a custom name, or `*` for the default one and all custom ones together.',
  })
  @IsOptional()
  @IsReadableStream()
  event_name?: string;
}

export class DeleteEventsQuery {
  @ApiPropertyOptional({ description: 'The first event to delete, inclusive; default: the oldest.' })
  @IsOptional()
  @IsEventId()
  start_id?: string;

  @ApiPropertyOptional({ description: 'The last event to delete, inclusive; default: the newest.' })
  @IsOptional()
  @IsEventId()
  end_id?: string;

  @ApiPropertyOptional({ description: 'The stream, or `*` for the default one and all custom ones; default: every stream.' })
  @IsOptional()
  @IsReadableStream()
  event_name?: string;
}
