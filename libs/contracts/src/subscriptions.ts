import { IsOptional, IsString } from 'class-validator';
import { ApiProperty } from '@nestjs/swagger';
import { command, query } from './contract.js';
import { type Id, IsId, type ListenerId, type SubscriptionId, type UserId } from './ids.js';

/** A subscription as the API returns it. */
export class Subscription {
  @ApiProperty({ type: String, example: 'sub_0Vg2mXq1Zk3TnB7cYw' }) id!: SubscriptionId;
  @ApiProperty({ description: 'The id of a source or workflow, a glob (`dc_*`, `p_*`) or your user id.' }) emitter_id!: string;
  @ApiProperty({ type: String }) listener_id!: ListenerId;
  @ApiProperty({ description: 'The event name as it was sent; empty for the default stream.' }) event_name!: string;
}

/** Identifies a subscription. A missing `event_name` counts as empty. */
export class SubscriptionReference {
  @IsId('user') owner_id!: UserId;
  @IsString() emitter_id!: string;
  @IsString() listener_id!: string;
  @IsOptional() @IsString() event_name?: string;
}
export const createSubscription = command<Subscription>()('routing.subscription.create', SubscriptionReference);
/** Returns the deleted subscriptions. */
export const deleteSubscription = command<Subscription[]>()('routing.subscription.delete', SubscriptionReference);

/** All resources of one owner. */
export class OwnerReference {
  @IsId('user') owner_id!: UserId;
}
export const listSubscriptions = query<Subscription[]>()('routing.subscription.list', OwnerReference);

/** A subscription to every emitter created later, as the API returns it. */
export class AutoSubscription {
  @ApiProperty({ type: String, example: 'asub_0Vg2mXq1Zk3TnB7cYw' }) id!: Id<'autoSubscription'>;
  @ApiProperty({ description: 'The event name as it was sent; empty for the default stream.' }) event_name!: string;
  @ApiProperty({ type: String }) listener_id!: ListenerId;
}

/** Identifies an auto-subscription. A missing `event_name` counts as empty. */
export class AutoSubscriptionReference {
  @IsId('user') owner_id!: UserId;
  @IsString() listener_id!: string;
  @IsOptional() @IsString() event_name?: string;
}
export const createAutoSubscription = command<AutoSubscription>()('routing.auto-subscription.create', AutoSubscriptionReference);
/** Returns the deleted auto-subscriptions. The subscriptions that they created are kept. */
export const deleteAutoSubscription = command<AutoSubscription[]>()('routing.auto-subscription.delete', AutoSubscriptionReference);
export const listAutoSubscriptions = query<AutoSubscription[]>()('routing.auto-subscription.list', OwnerReference);
