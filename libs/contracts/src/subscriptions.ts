import { IsOptional, IsString } from 'class-validator';
import { command, query } from './contract.js';
import { type Id, IsId, type ListenerId, type SubscriptionId, type UserId } from './ids.js';

/** A subscription as the API returns it. */
export interface Subscription {
  id: SubscriptionId;
  emitter_id: string;
  listener_id: ListenerId;
  event_name: string;
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

/** A reply has at most this many: an account may have a million. */
export const SUBSCRIPTIONS_PER_REPLY = 5000;

export class ListSubscriptions {
  @IsId('user') owner_id!: UserId;
  /** Only those that are older than this one. */
  @IsOptional() @IsId('subscription') before?: SubscriptionId;
}
/** Newest first. One that is shorter than SUBSCRIPTIONS_PER_REPLY is the last. */
export const listSubscriptions = query<Subscription[]>()('routing.subscription.list', ListSubscriptions);

/** A subscription to every emitter created later, as the API returns it. */
export interface AutoSubscription {
  id: Id<'autoSubscription'>;
  event_name: string;
  listener_id: ListenerId;
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
