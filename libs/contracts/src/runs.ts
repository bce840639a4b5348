import { IsIn, IsInt, IsOptional, IsString } from 'class-validator';
import { fact } from './contract.js';
import { IsId, type SourceId, type UserId } from './ids.js';

/** Why a run is due. */
export type RunTrigger = 'timer' | 'http' | 'event' | 'manual';

/** A run that is due. Key: the account. A run is at least once; its id makes its effects happen once. */
export class RunRequested {
  @IsString() run_id!: string;
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  @IsIn(['timer', 'http', 'event', 'manual']) trigger!: RunTrigger;
  /** The event's JSON text, as `run(event)` gets it; without one, what the source's timer would give. */
  @IsOptional() @IsString() event?: string;
  /** When it became due, in ms. */
  @IsInt() due_at_ms!: number;
  /** How many sources and workflows the event came through. */
  @IsOptional() @IsInt() hops?: number;
}
export const runRequested = fact('runtime.run.requested', RunRequested);

/** A run that has ended. Key: the account. */
export class RunFinished {
  @IsString() run_id!: string;
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  @IsString() status!: string;
  /** Wall-clock milliseconds, rounded up. */
  @IsInt() compute_ms!: number;
  @IsInt() finished_at_ms!: number;
}
export const runFinished = fact('runtime.run.finished', RunFinished);
