import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { command, query } from './contract.js';
import { IsId, type UserId, type WebhookId } from './ids.js';
import { type Page, PageRequest } from './page.js';

/** A webhook as the API answers it. Times are Unix seconds. */
export class Webhook {
  @ApiProperty({ type: String, example: 'wh_0Vg2mXq1Zk3TnB7cYw' }) id!: WebhookId;
  @ApiPropertyOptional({ type: String, description: 'The owner; not in lists.' }) user_id?: UserId;
  @ApiProperty({ type: String, nullable: true }) name!: string | null;
  @ApiProperty({ type: String, nullable: true }) description!: string | null;
  @ApiProperty({ example: 'https://example.com/hooks' }) url!: string;
  @ApiProperty() active!: boolean;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) updated_at!: number;
}

export class WebhookFields {
  @ApiPropertyOptional({ description: 'An http or https URL with a host name; a port and a path are allowed.' })
  @IsOptional()
  @IsString({ message: 'url must be a string' })
  url?: string;

  @ApiPropertyOptional({ type: String, nullable: true })
  @IsOptional()
  @IsString({ message: 'name must be a string' })
  name?: string | null;

  @ApiPropertyOptional({ type: String, nullable: true })
  @IsOptional()
  @IsString({ message: 'description must be a string' })
  description?: string | null;
}

export class CreateWebhook extends WebhookFields {
  /** The new webhook's id: a command that is carried out twice makes one webhook. */
  @IsId('webhook') id!: WebhookId;
  @IsId('user') owner_id!: UserId;
}
export const createWebhook = command<Webhook>()('routing.webhook.create', CreateWebhook);

export class ListWebhooks extends PageRequest {
  @IsId('user') owner_id!: UserId;
}
export const listWebhooks = query<Page<Webhook>>()('routing.webhook.list', ListWebhooks);

/** One webhook of an owner. */
export class WebhookReference {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') id!: WebhookId;
}
export const getWebhook = query<Webhook>()('routing.webhook.get', WebhookReference);
/** Its subscriptions and what waits to be delivered go with it. */
export const deleteWebhook = command<void>()('routing.webhook.delete', WebhookReference);

/** What is absent stays as it is; `null` empties the name or the description. */
export class UpdateWebhook extends WebhookFields {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') id!: WebhookId;

  @ApiPropertyOptional()
  @IsOptional()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}
export const updateWebhook = command<Webhook>()('routing.webhook.update', UpdateWebhook);

/** `previous_expires_at` (Unix seconds): until then the secret before the last rotation signs too. */
export class WebhookSecret {
  @ApiProperty({ example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=' }) secret!: string;
  @ApiPropertyOptional({ type: 'integer', description: 'Unix seconds; only after a rotation.' }) previous_expires_at?: number;
}
export const getWebhookSecret = query<WebhookSecret>()('routing.webhook.get-secret', WebhookReference);

export class RotateWebhookSecret extends WebhookReference {
  /** Made up by the asker: a command that is carried out twice rotates once. */
  @IsString() rotation_id!: string;
}
export const rotateWebhookSecret = command<WebhookSecret>()('routing.webhook.rotate-secret', RotateWebhookSecret);
