import { Type } from 'class-transformer';
import { IsArray, IsIn, IsInt, IsObject, IsOptional, IsString, ValidateNested } from 'class-validator';
import { command, fact, query, queuedCommand } from './contract.js';
import type { Deployment, Hook } from './emitters.js';
import { IsId, type SourceId, type UserId } from './ids.js';
import { type Page, PageRequest } from './page.js';
import type { DeliveryAttempt } from './webhooks.js';

export const RUN_TRIGGERS = ['timer', 'http', 'event', 'manual', 'hook'] as const;
/** Why a run is due. */
export type RunTrigger = (typeof RUN_TRIGGERS)[number];

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
  @IsIn(RUN_TRIGGERS) trigger!: RunTrigger;
  /** The event's JSON text, the argument of `run(event)`. If absent, the event of the source's timer. */
  @IsOptional() @IsString() event?: string;
  /** A large body of an HTTP request, in base64: it is parsed in the sandbox, and added to the event there. */
  @IsOptional() @IsString() http_body?: string;
  /** When it became due, in ms. */
  @IsInt() due_at_ms!: number;
  /** The number of sources and workflows that the event passed through. */
  @IsOptional() @IsInt() hops?: number;
  /** The cause of the event. */
  @IsOptional() @IsObject() cause?: { root: string; spread: number };
  @IsOptional() @IsObject() hook?: HookRun;
  /** A further attempt: the id of the first one, which failed, and the number of this one, from 2. */
  @IsOptional() @IsObject() retry?: { first_run_id: string; attempt: number };
}
/** Written in the transaction that makes the run due (a timer's tick, a change with hooks); executed when its turn comes. */
export const executeRun = queuedCommand('runtime.run.execute', RunRequest);

/** Admits a run that a user requests, before it is published. Returns false if the account is over its quota, which is reported on `$errors`. */
export const admitRun = command<boolean>()('runtime.run.admit', RunRequest);

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

/** A changed key of `this.db`. */
export class KeptEntry {
  @IsString() key!: string;
  /** JSON text; null: deleted. */
  @IsOptional() @IsString() value!: string | null;
}

/** An emit that waits for its `delivery_ts`, with the record of the event. */
export class KeptEmit {
  @IsString() emit_id!: string;
  /** Milliseconds. */
  @IsInt() due_at_ms!: number;
  /** Its place among the emits of the run. */
  @IsInt() nth!: number;
  @IsObject() headers!: Record<string, string>;
  /** JSON text. */
  @IsString() value!: string;
}

/**
 * The stored changes of a run whose component has responded to its request itself, or a part of them. The request is not in Kafka: when the database was
 * restored to an older state, the run cannot be repeated, but its changes can be stored again. Key: the account.
 */
export class RunChanges {
  @IsString() run_id!: string;
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  /** The number of this part, from 0; absent: it is the last one. */
  @IsOptional() @IsInt() part?: number;
  @IsArray() @ValidateNested({ each: true }) @Type(() => KeptEntry) db!: KeptEntry[];
  /** The dedupe state after the run. */
  @IsOptional() @IsObject() dedupe?: object;
  @IsArray() @ValidateNested({ each: true }) @Type(() => KeptEmit) waiting!: KeptEmit[];
}
/** Written in the transaction that stores the outcome of the run; does nothing as long as that is stored. */
export const restoreRun = queuedCommand('runtime.run.restore', RunChanges);

export const RUN_METHODS = ['run', 'deploy', 'activate', 'deactivate'] as const;
export const RUN_RESULTS = ['succeeded', 'failed', 'timed_out', 'killed', 'skipped'] as const;

/** A run that has ended, as the API returns it. */
export interface FinishedRun {
  id: string;
  trigger: RunTrigger;
  method: (typeof RUN_METHODS)[number];
  status: (typeof RUN_RESULTS)[number];
  /** Unix seconds. */
  started_at: number;
  duration_ms: number;
  /** How many events it emitted. */
  emitted: number;
  error: { name: string; message: string; stack: string } | null;
}

export class ListRuns extends PageRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
}
/** The last runs of a source that have ended. */
export const listRuns = query<Page<FinishedRun>>()('runtime.run.list', ListRuns);

/** The arguments of a prop's `options()`, in addition to the values of the props. */
export class OptionsRequest {
  @IsOptional() @IsObject() configured_props?: Record<string, unknown>;
  @IsOptional() @IsString() query?: string;
  @IsOptional() @IsInt() page?: number;
  @IsOptional() @IsObject() prev_context?: Record<string, unknown>;
}

export interface PropOptions {
  options: unknown[];
  context: Record<string, unknown> | null;
}

export class SourceOptions extends OptionsRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  @IsString() prop!: string;
}
/** The options of a source's prop. The given values take the place of the configured ones. */
export const sourceOptions = query<PropOptions>()('runtime.source.options', SourceOptions, { secret: true });

export class ComponentOptions extends OptionsRequest {
  @IsId('user') owner_id!: UserId;
  /** Of a component that the owner may use. */
  @IsString() code_hash!: string;
  @IsString() prop!: string;
}
export const componentOptions = query<PropOptions>()('runtime.component.options', ComponentOptions, { secret: true });

/** The run of a replay of an event, by the id of its first attempt. */
export class ReplayedRun {
  @IsString() run_id!: string;
  @IsId('source') source_id!: SourceId;
}

export class FindRuns {
  @IsId('user') owner_id!: UserId;
  /** `runKeyOf` the event. */
  @IsString() run_key!: string;
  /** Oldest first. */
  @IsArray() @ValidateNested({ each: true }) @Type(() => ReplayedRun) replayed!: ReplayedRun[];
}

/** A run that an event caused, with its further attempts. */
export interface EventRun {
  source_id: SourceId;
  /** The last attempt that has ended; null: none. */
  last_id: string | null;
  /** `pending`: it waits for its turn, or it failed and will be repeated. null: it has left the list of runs. */
  status: FinishedRun['status'] | 'pending' | null;
  /** The attempts that are still listed, oldest first. */
  attempts: DeliveryAttempt[];
}
/** The runs of an event that have ended or wait: those that it caused itself, and then those of replays. */
export const findRuns = query<EventRun[]>()('runtime.run.find', FindRuns);

export class FindRunOutcomes {
  @IsId('user') owner_id!: UserId;
  @IsId('source') source_id!: SourceId;
  /** First attempts. */
  @IsArray() @IsString({ each: true }) run_ids!: string[];
}

/** Ids of runs. One that is in none of the lists is in progress, has not been read from the topic, or was dropped. */
export interface RunOutcomes {
  /** Also those that have left the list of runs. */
  succeeded: string[];
  failed: string[];
  /** They wait for their turn. */
  queued: string[];
  /** Whether other runs of the source wait for theirs. */
  others_wait: boolean;
}
export const findRunOutcomes = query<RunOutcomes>()('runtime.run.outcomes', FindRunOutcomes);
