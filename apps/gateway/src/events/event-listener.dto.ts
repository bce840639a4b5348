import { ApiProperty } from '@nestjs/swagger';
import type * as contracts from '#contracts';
import { DeliveryAttempt } from '../webhooks/delivery.dto.js';

const KINDS = ['webhook', 'source', 'workflow'] as const;
const STATUSES = ['succeeded', 'pending', 'failed', 'skipped'] as const;

/** A listener that received an event, as the API returns it. */
export class EventListener implements contracts.EventListener {
  @ApiProperty({ type: String, example: 'wh_0Vg2mXq1Zk3TnB7cYw' }) listener_id!: contracts.ListenerId;
  @ApiProperty({ enum: KINDS }) kind!: contracts.EventListener['kind'];
  @ApiProperty({ type: String, nullable: true, description: 'Of a webhook; null until the delivery is stored or has succeeded.' })
  delivery_id!: contracts.Id<'delivery'> | null;
  @ApiProperty({ type: String, nullable: true, description: 'Of a source: its last run that has ended.' }) run_id!: string | null;
  @ApiProperty({ enum: STATUSES, description: '`skipped`: the listener was inactive, or the account was over its quota.' })
  status!: contracts.EventListener['status'];
  @ApiProperty({
    type: [DeliveryAttempt],
    description: 'Of a webhook the last twenty attempts, of a source the runs that are still listed; oldest first.',
  })
  attempts!: DeliveryAttempt[];
}
