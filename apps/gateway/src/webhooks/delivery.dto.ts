import { ApiProperty } from '@nestjs/swagger';
import { Allow } from 'class-validator';
import type * as contracts from '#contracts';
import { Invalid } from '#contracts';
import { timeOf } from '../http/time-of.js';

/** One attempt of a delivery. */
export class DeliveryAttempt implements contracts.DeliveryAttempt {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'The start of the attempt, in milliseconds.' }) ts!: number;
  @ApiProperty({ type: 'integer', nullable: true, description: 'null if there was no response.' }) status_code!: number | null;
  @ApiProperty({ type: 'integer' }) duration_ms!: number;
  @ApiProperty({ type: String, nullable: true, description: 'Why there was no response.' }) error!: string | null;
  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The first KB of the response. Only the last three attempts of a delivery have it.',
  })
  response_body!: string | null;
}

/** A delivery as the API returns it. */
export class WebhookDelivery implements contracts.WebhookDelivery {
  @ApiProperty({ type: String, example: 'del_0Vg2mXq10000000A0b' }) id!: contracts.Id<'delivery'>;
  @ApiProperty({ example: '1763715600123-40960' }) event_id!: string;
  @ApiProperty({ type: String }) emitter_id!: contracts.EmitterId;
  @ApiProperty({ enum: ['succeeded', 'pending', 'failed'] }) status!: contracts.DeliveryStatus;
  @ApiProperty({ type: 'integer', format: 'int64', nullable: true, description: 'Unix seconds; null unless the delivery is pending.' })
  next_attempt_at!: number | null;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds: when the event was emitted.' }) created_at!: number;
  @ApiProperty({ type: [DeliveryAttempt], description: 'The last twenty attempts, oldest first.' }) attempts!: DeliveryAttempt[];
}

export class RecoverParameters {
  @ApiProperty({ type: String, description: 'ISO 8601 (UTC without a zone), or Unix seconds.', example: '2026-01-31T12:00:00Z' })
  @Allow()
  since!: string | number;
}

/** The time since which deliveries are recovered, in ms. Throws Invalid if the parameters name none. */
export function recoveredSince({ since }: RecoverParameters): number {
  const bad = (problem: string) => new Invalid([{ field: 'since', message: `since ${problem}` }]);
  if (since === undefined || since === null) throw bad('is required: ISO 8601 or Unix seconds');
  const ms = typeof since === 'string' || typeof since === 'number' ? timeOf(String(since)) : undefined;
  if (ms === undefined) throw bad(`must be ISO 8601 or Unix seconds, not ${JSON.stringify(since).slice(0, 100)}`);
  return ms;
}
