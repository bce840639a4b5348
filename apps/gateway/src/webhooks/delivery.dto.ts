import { ApiProperty } from '@nestjs/swagger';
import { ValidateBy } from 'class-validator';
import type * as contracts from '#contracts';
import { problemWith, TIME, timeOf } from '../http/time-of.js';

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

/** A time: ISO 8601, or Unix seconds as text or as a number. */
const IsTime = (): PropertyDecorator =>
  ValidateBy({
    name: 'isTime',
    validator: {
      validate: (value: unknown) => msOf(value) !== undefined,
      defaultMessage: (args) => {
        const { value, property } = args as { value: unknown; property: string };
        return `${property} ${problemWith(value, TIME)}`;
      },
    },
  });

const msOf = (value: unknown): number | undefined =>
  typeof value === 'string' || typeof value === 'number' ? timeOf(String(value)) : undefined;

export class RecoverParameters {
  @ApiProperty({ type: String, description: 'ISO 8601 (UTC without a zone), or Unix seconds.', example: '2026-01-31T12:00:00Z' })
  @IsTime()
  since!: string | number;
}

/** The time since which deliveries are recovered, in ms. */
export const recoveredSince = ({ since }: RecoverParameters): number => msOf(since)!;
