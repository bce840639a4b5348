import { IsIn, IsInt, IsObject, IsOptional, IsString } from 'class-validator';
import { fact, queuedCommand } from './contract.js';
import type { Deployment, Hook } from './emitters.js';
import { IsId, type SourceId, type UserId } from './ids.js';

/** Why a run is due. */
export type RunTrigger = 'timer' | 'http' | 'event' | 'manual' | 'hook';

/** A run of a hook instead of `run`, with the deployment before or after the change. */
export interface HookRun {
  method: Hook;
  version: number;
  deployment: Deployment;
  /** The source has been deleted: its stored data is removed after this hook, whether or not the hook succeeds. */
  final: boolean;
}

/** A run that is due. Key: the account. Executed at least once; the id ensures that its effects are stored once. */
export class RunRequest {
  @IsString() run_id!: string;
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  @IsIn(['timer', 'http', 'event', 'manual', 'hook']) trigger!: RunTrigger;
  /** The event's JSON text, the argument of `run(event)`. If absent, the event of the source's timer. */
  @IsOptional() @IsString() event?: string;
  /** When it became due, in ms. */
  @IsInt() due_at_ms!: number;
  /** The number of sources and workflows that the event passed through. */
  @IsOptional() @IsInt() hops?: number;
  @IsOptional() @IsObject() hook?: HookRun;
}
/** Written in the transaction that makes the run due (a timer's tick, a change with hooks); executed when its turn comes. */
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
