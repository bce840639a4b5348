import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { command, query } from './contract.js';
import { type EmitterId, type Id, IsId, type ListenerId, type UserId } from './ids.js';

export type ReplayId = Id<'replay'>;

/** The progress of a replay, as the API returns it. */
export interface ReplayProgress {
  id: ReplayId;
  status: 'running' | 'done' | 'cancelled';
  /** How many events it delivers. */
  events: number;
  delivered: number;
  /** The number of deliveries and runs whose first attempt failed, and of events that were deleted meanwhile. Deliveries are retried on the schedule of the webhook. */
  failed: number;
}

/** The events of an emitter from the log, once more to one listener. */
export class ReplayRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsString() stream!: string;
  /** Event ids, both inclusive; the events need not exist. */
  @IsString() from_id!: string;
  @IsString() to_id!: string;
  @IsId('webhook', 'source', 'workflow') listener_id!: ListenerId;
}

export class CreateReplay extends ReplayRequest {
  /** The id of the new replay, so that a repeated command creates one replay. */
  @IsId('replay') id!: ReplayId;
  /** Only counts the events. */
  @IsOptional() @IsBoolean() dry_run?: boolean;
}
/** Returns how many events it will deliver. */
export const createReplay = command<{ events: number }>()('routing.replay.create', CreateReplay);

export class ReplayReference {
  @IsId('user') owner_id!: UserId;
  @IsId('replay') id!: ReplayId;
}
export const getReplay = query<ReplayProgress>()('routing.replay.get', ReplayReference);
/** Delivers nothing more of it. One that is done stays so. */
export const cancelReplay = command<ReplayProgress>()('routing.replay.cancel', ReplayReference);
