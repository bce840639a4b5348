import { IsArray, IsBoolean, IsIn, IsInt, IsObject, IsOptional, IsString } from 'class-validator';
import { fact, query, type Service } from './contract.js';
import { type EmitterId, IsId, type SourceId, type UserId } from './ids.js';

/** The hooks of a component: run when its source is created, switched on or off. */
export type Hook = 'deploy' | 'activate' | 'deactivate';

/** When a timer prop ticks; exactly one of the two is set. */
export type Schedule = { interval_seconds: number; cron: null } | { interval_seconds: null; cron: string; timezone?: string };

/** Encrypted JSON, bound to its source; a plain object in rows and messages of older versions. */
export type StoredProps = string | Record<string, unknown>;

/** The context to which the encrypted props of a source are bound (libs/secrets). */
export const propsContext = (sourceId: string): string => `source ${sourceId}`;

/** All that the runtime needs to run a source. */
export interface Deployment {
  code_hash: string;
  /**
   * The configured values; the defaults of other props are in the code. See StoredProps.
   */
  configured_props: StoredProps;
  /** The credentials of the connections that `app` props name by `authProvisionId`, encrypted (`connectionContext`), by id. */
  credentials?: Record<string, string> | null;
  /** By timer prop. */
  schedules: Record<string, Schedule>;
  /** The secret part of the endpoint's URL; null if the component has no HTTP interface. */
  endpoint_key: string | null;
  name_slug: string;
  /** The hooks that the component defines; only these are run. Absent: unknown, so all of them are requested. */
  hooks?: Hook[];
  /** How many of its runs may be in progress at a time. Absent: unknown, so one. */
  runs_at_a_time?: number;
}

/** The whole state of an emitter after a change. The highest `version` is the current one. */
export class EmitterState {
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsIn(['source', 'workflow']) kind!: 'source' | 'workflow';
  @IsId('user') owner_id!: UserId;
  /** False while its account is suspended, too. */
  @IsBoolean() active!: boolean;
  /** It is inactive only because its account is suspended: no hook runs for that, and its endpoint returns 503. */
  @IsOptional() @IsBoolean() suspended?: boolean;
  @IsBoolean() deleted!: boolean;
  /** Increases with each change of this emitter. */
  @IsInt() version!: number;
  @IsString() name!: string;
  /** When it was created, in ms: an auto-subscription applies only to emitters created after it. */
  @IsInt() created_at_ms!: number;
  /** When a workflow was last removed, in ms: it may have returned since. */
  @IsOptional() @IsInt() removed_at_ms?: number;
  @IsOptional() @IsObject() deployment?: Deployment;
}

/** Key: the emitter's id. */
export const emitterChanged = fact('catalog.emitter.changed', EmitterState, { compacted: true });

/** A change of how an emitter runs, of whether it is active, or its end. */
export type EmitterChangeKind = 'configured' | 'switched' | 'deleted';

/**
 * The services that act on a change before the request that made it returns. The others learn it from the fact, a moment later: until then they
 * look up an emitter that they do not know, and have no use for the rest. So a new emitter is not announced.
 */
export const ACTS_ON: Record<EmitterChangeKind, readonly Service[]> = {
  configured: ['runtime'],
  switched: ['runtime', 'routing'],
  deleted: ['runtime', 'routing', 'event-store', 'gateway'],
};

export class FindEmitters {
  @IsArray() ids!: string[];
  /** For a service that does not run sources: a deployment may be large. */
  @IsOptional() @IsBoolean() without_deployments?: boolean;
  /** Also those workflows whose records were in the topic `workflows` when the request came. The reply may be `unavailable` while the catalog is behind. */
  @IsOptional() @IsBoolean() up_to_date?: boolean;
}
/**
 * Returns the states of the emitters that exist, the last states of workflows that were removed, and those of sources that were deleted within the last
 * days. For a service that sees an id before its fact has arrived.
 */
export const findEmitters = query<EmitterState[]>()('catalog.emitter.find', FindEmitters);

export class FindNewEmitters {
  @IsId('user') owner_id!: UserId;
}
/** The ids of the sources that the account has created in the last 30 seconds. For a service that needs all of them, also those whose facts have not arrived. */
export const findNewEmitters = query<SourceId[]>()('catalog.emitter.find-new-ids', FindNewEmitters);

export class FindEndpoints {
  @IsArray() endpoint_keys!: string[];
}
/** The sources that have these endpoints. */
export const findEndpoints = query<EmitterState[]>()('catalog.emitter.find-endpoints', FindEndpoints);
