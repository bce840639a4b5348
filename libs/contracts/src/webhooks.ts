import { Type } from 'class-transformer';
import { IsBoolean, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { command, query } from './contract.js';
import { type EmitterId, type Id, IsId, type UserId, type WebhookId } from './ids.js';
import { type Page, PageRequest } from './page.js';

/** A webhook as the API answers it. Times are Unix seconds. */
export class Webhook {
  @ApiProperty({ type: String, example: 'wh_0Vg2mXq1Zk3TnB7cYw' }) id!: WebhookId;
  @ApiPropertyOptional({ type: String, description: 'The owner; not in lists.' }) user_id?: UserId;
  @ApiProperty({ type: String, nullable: true }) name!: string | null;
  @ApiProperty({ type: String, nullable: true }) description!: string | null;
  @ApiProperty({ example: 'https://example.com/hooks' }) url!: string;
  @ApiProperty() active!: boolean;
  @ApiPropertyOptional({ type: 'integer', description: 'Deliveries per second; absent when there is no limit.' }) rate_limit?: number;
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

  @ApiPropertyOptional({
    type: 'integer',
    nullable: true,
    minimum: 1,
    maximum: 10_000,
    description: 'Deliveries per second; null for no limit.',
  })
  @IsOptional()
  @Type(() => Number)
  @IsInt({ message: 'rate_limit must be an integer from 1 to 10000' })
  @Min(1, { message: 'rate_limit must be an integer from 1 to 10000' })
  @Max(10_000, { message: 'rate_limit must be an integer from 1 to 10000' })
  rate_limit?: number | null;
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

/** One try of a delivery. */
export class DeliveryAttempt {
  @ApiProperty({ type: 'integer', description: 'When it began, in ms.' }) ts!: number;
  @ApiProperty({ type: 'integer', nullable: true, description: 'null: no answer.' }) status_code!: number | null;
  @ApiProperty({ type: 'integer' }) duration_ms!: number;
  @ApiProperty({ type: String, nullable: true, description: 'Why there was no answer.' }) error!: string | null;
  @ApiProperty({ type: String, nullable: true, description: 'The first KB of the answer.' }) response_body!: string | null;
}

export type DeliveryStatus = 'succeeded' | 'pending' | 'failed';

/** An event on its way to a webhook, as the API answers it. */
export class WebhookDelivery {
  @ApiProperty({ type: String, example: 'del_0Vg2mXq10000000A0b' }) id!: Id<'delivery'>;
  @ApiProperty({ example: '1763715600123-40960' }) event_id!: string;
  @ApiProperty({ type: String }) emitter_id!: EmitterId;
  @ApiProperty({ enum: ['succeeded', 'pending', 'failed'] }) status!: DeliveryStatus;
  @ApiProperty({ type: 'integer', nullable: true, description: 'Unix seconds; null unless it is pending.' }) next_attempt_at!:
    number | null;
  @ApiProperty({ type: 'integer', description: 'Unix seconds: when the event was emitted.' }) created_at!: number;
  @ApiProperty({ type: [DeliveryAttempt], description: 'The newest twenty, the oldest of them first.' }) attempts!: DeliveryAttempt[];
}

export class ListDeliveries extends PageRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
}
/** Of what succeeded at least the newest 100; all that is pending, and what has failed as long as it's kept. */
export const listDeliveries = query<Page<WebhookDelivery>>()('routing.delivery.list', ListDeliveries);

/** Delivers a sample event at once, also to an inactive webhook; it is not listed and never retried. */
export const testWebhook = command<DeliveryAttempt>()('routing.webhook.test', WebhookReference);

/** One delivery of an owner's webhook. */
export class DeliveryReference {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
  @IsId('delivery') id!: Id<'delivery'>;
}
/** Makes a pending or failed delivery due now. */
export const retryDelivery = command<WebhookDelivery>()('routing.delivery.retry', DeliveryReference);

export class RecoverDeliveries {
  @IsId('user') owner_id!: UserId;
  @IsId('webhook') webhook_id!: WebhookId;
  /** In ms: what failed then or later. */
  @IsInt({ message: 'since must be a time' }) since_ms!: number;
}
/** Makes all that has failed since then due now. */
export const recoverDeliveries = command<{ count: number }>()('routing.delivery.recover', RecoverDeliveries);
