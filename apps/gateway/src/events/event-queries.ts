import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import { PageRequest } from '#contracts';

export class StreamPageQuery extends PageRequest {
  @ApiPropertyOptional({ description: '`event`: whole events; without it one over 1 KB is shortened.' })
  @IsOptional()
  @IsString({ message: 'expand must be a string' })
  expand?: string;
}

export class EventPageQuery extends StreamPageQuery {
  @ApiPropertyOptional({ description: 'Another stream than the default one: `$errors`, `$logs`, `$in` or a custom name.' })
  @IsOptional()
  @IsString({ message: 'event_name must be a string' })
  event_name?: string;
}

export class DeleteEventsQuery {
  @ApiPropertyOptional({ description: 'The first event to delete, inclusive; without it, from the oldest on.' })
  @IsOptional()
  @IsString({ message: 'start_id must be an event id' })
  start_id?: string;

  @ApiPropertyOptional({ description: 'The last event to delete, inclusive; without it, up to the newest.' })
  @IsOptional()
  @IsString({ message: 'end_id must be an event id' })
  end_id?: string;

  @ApiPropertyOptional({ description: 'Only this stream; without it, every stream.' })
  @IsOptional()
  @IsString({ message: 'event_name must be a string' })
  event_name?: string;
}
