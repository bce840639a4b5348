import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean, IsOptional } from 'class-validator';
import { WebhookFields } from '#contracts';

export class UpdateWebhookBody extends WebhookFields {
  @ApiPropertyOptional({ type: Boolean, description: 'An inactive webhook is skipped.' })
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}
