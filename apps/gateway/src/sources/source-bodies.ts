import { ApiPropertyOptional } from '@nestjs/swagger';
import { Allow, IsBoolean, IsOptional } from 'class-validator';
import { NewSource, SourcePatch } from '#contracts';

export class CreateSourceBody extends NewSource {}

export class UpdateSourceBody extends NewSource {
  @ApiPropertyOptional({ type: Boolean, default: true, description: 'false disables the source, true enables it.' })
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}

export class PatchSourceBody extends SourcePatch {}

export class RunSourceBody {
  @ApiPropertyOptional({ description: 'The event passed to `run`: any JSON value.' })
  @Allow()
  event?: unknown;
}
