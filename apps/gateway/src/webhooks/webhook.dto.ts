import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsBoolean, IsOptional } from 'class-validator';
import { WebhookFields } from '#contracts';

export class UpdateWebhookBody extends WebhookFields {
  @ApiPropertyOptional({ type: Boolean, description: 'Events are not delivered to an inactive webhook.' })
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}
