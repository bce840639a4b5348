import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';

export class SubscriptionParameters {
  @ApiProperty({
    description: 'The id of a source or workflow, `dc_*` (all sources), `p_*` (all workflows) or your user id (all sources and workflows).',
  })
  @IsString({ message: 'emitter_id is required' })
  emitter_id!: string;

  @ApiProperty({ description: 'The id of a source, workflow or webhook.' })
  @IsString({ message: 'listener_id is required' })
  listener_id!: string;

  @ApiPropertyOptional({ description: '`$errors`, `$logs`, `default` or a custom stream; if empty or omitted, the default stream.' })
  @IsOptional()
  @IsString({ message: 'event_name must be a string' })
  event_name?: string;
}

export class AutoSubscriptionParameters {
  @ApiProperty({ description: 'The id of a source, workflow or webhook.' })
  @IsString({ message: 'listener_id is required' })
  listener_id!: string;

  @ApiProperty({ description: '`$errors`, `$logs`, `default` or a custom stream.' })
  @IsString({ message: 'event_name is required' })
  event_name!: string;
}
