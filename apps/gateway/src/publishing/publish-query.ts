import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';

export class PublishQuery {
  @ApiPropertyOptional({
    description: 'The stream: `default`, `$errors`, `$logs` or a custom name. Wins over the attributes `sluicestream` and `type`.',
  })
  @IsOptional()
  @IsString({ message: 'event_name must be a string' })
  event_name?: string;

  @ApiPropertyOptional({
    description: 'The emit id, at most 256 characters. Wins over the attribute `id`; not for a batch of several events.',
  })
  @IsOptional()
  @IsString({ message: 'id must be a string' })
  id?: string;
}
