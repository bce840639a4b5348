import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import { IsEventId, IsReadableStream } from '../events/event-validators.js';

export class LiveQuery {
  @ApiPropertyOptional({ description: '`event`: whole events; without it one over 1 KB is shortened.' })
  @IsOptional()
  @IsString({ message: 'expand must be a string' })
  expand?: string;

  @ApiPropertyOptional({ description: 'Another stream than the default one: `$errors`, `$logs`, `$in` or a custom name.' })
  @IsOptional()
  @IsReadableStream()
  event_name?: string;

  @ApiPropertyOptional({ description: 'The id of an event: begin with those after it. The header Last-Event-ID wins.' })
  @IsOptional()
  @IsEventId({ orEmpty: true })
  after?: string;
}
