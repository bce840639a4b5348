import { IsOptional, IsString } from 'class-validator';
import { ApiProperty } from '@nestjs/swagger';
import { command, query } from './contract.js';
import { IsId, type ListenerId, type SubscriptionId, type UserId } from './ids.js';

/** A subscription as the API answers it. */
export class Subscription {
  @ApiProperty({ type: String, example: 'sub_0Vg2mXq1Zk3TnB7cYw' }) id!: SubscriptionId;
  @ApiProperty({ description: "A source's or workflow's id, a glob (`dc_*`, `p_*`) or the caller's own id." }) emitter_id!: string;
  @ApiProperty({ type: String }) listener_id!: ListenerId;
  @ApiProperty({ description: 'As it was sent; empty for the default stream.' }) event_name!: string;
}

/** What names a subscription. A missing `event_name` is the empty one. */
export class SubscriptionReference {
  @IsId('user') owner_id!: UserId;
  @IsString() emitter_id!: string;
  @IsString() listener_id!: string;
  @IsOptional() @IsString() event_name?: string;
}
export const createSubscription = command<Subscription>()('routing.subscription.create', SubscriptionReference);
export const deleteSubscription = command<Subscription[]>()('routing.subscription.delete', SubscriptionReference);

/** All of an owner's. */
export class OwnerReference {
  @IsId('user') owner_id!: UserId;
}
export const listSubscriptions = query<Subscription[]>()('routing.subscription.list', OwnerReference);
