import { IsIn, IsInt, IsObject, IsOptional, IsString } from 'class-validator';
import { fact, queuedCommand } from './contract.js';
import type { Deployment, Hook } from './emitters.js';
import { IsId, type SourceId, type UserId } from './ids.js';

/** Why a run is due. */
export type RunTrigger = 'timer' | 'http' | 'event' | 'manual' | 'hook';

/** A run of a hook instead of `run`, with the source as it was, or is, at that change. */
export interface HookRun {
  method: Hook;
  version: number;
  deployment: Deployment;
  /** The source is deleted: what it kept goes after this hook, however that ends. */
  final: boolean;
}

/** A run that is due. Key: the account. A run is at least once; its id makes its effects happen once. */
export class RunRequest {
  @IsString() run_id!: string;
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  @IsIn(['timer', 'http', 'event', 'manual', 'hook']) trigger!: RunTrigger;
  /** The event's JSON text, as `run(event)` gets it; without one, what the source's timer would give. */
  @IsOptional() @IsString() event?: string;
  /** When it became due, in ms. */
  @IsInt() due_at_ms!: number;
  /** How many sources and workflows the event came through. */
  @IsOptional() @IsInt() hops?: number;
  @IsOptional() @IsObject() hook?: HookRun;
}
/** Written together with what makes the run due (a timer that moves on, a hook's change); executed once its turn comes. */
export const executeRun = queuedCommand('runtime.run.execute', RunRequest);

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
