import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean, IsOptional } from 'class-validator';
import { ComponentChoice } from '#contracts';

export class CreateSourceBody extends ComponentChoice {}

export class UpdateSourceBody extends ComponentChoice {
  @ApiPropertyOptional({ default: true, description: 'false disables the source, true enables it.' })
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}
