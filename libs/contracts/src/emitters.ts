import { IsArray, IsBoolean, IsIn, IsInt, IsObject, IsOptional, IsString } from 'class-validator';
import { fact, query } from './contract.js';
import { type EmitterId, IsId, type UserId } from './ids.js';

/** What a component may do when its source is created, switched on or off. */
export type Hook = 'deploy' | 'activate' | 'deactivate';

/** When a timer prop ticks; exactly one of the two is set. */
export type Schedule = { interval_seconds: number; cron: null } | { interval_seconds: null; cron: string; timezone?: string };

/** All that the runtime needs to run a source. */
export interface Deployment {
  code_hash: string;
  /** The values that the user configured; defaults come from the code. */
  configured_props: Record<string, unknown>;
  /** By timer prop. */
  schedules: Record<string, Schedule>;
  /** The secret part of the endpoint's URL; null without an HTTP interface. */
  endpoint_key: string | null;
  name_slug: string;
  /** Those that the component has: no run is asked for another. Absent: unknown, all are asked for. */
  hooks?: Hook[];
}

/** The whole state of an emitter after a change: the newest `version` counts. */
export class EmitterState {
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsIn(['source', 'workflow']) kind!: 'source' | 'workflow';
  @IsId('user') owner_id!: UserId;
  @IsBoolean() active!: boolean;
  @IsBoolean() deleted!: boolean;
  /** Grows with each change of this emitter. */
  @IsInt() version!: number;
  @IsString() name!: string;
  /** When it came to exist, in ms: auto-subscriptions reach only what is younger than they are. */
  @IsInt() created_at_ms!: number;
  @IsOptional() @IsObject() deployment?: Deployment;
}

/** Key: the emitter's id. */
export const emitterChanged = fact('catalog.emitter.changed', EmitterState, {
  compacted: true,
  announcedTo: ['gateway', 'routing', 'event-store', 'runtime'],
});

export class FindEmitters {
  @IsArray() ids!: string[];
}
/** Those of the emitters that exist; for who meets an id that no fact has told of yet. */
export const findEmitters = query<EmitterState[]>()('catalog.emitter.find', FindEmitters);

export class FindEndpoint {
  @IsString() endpoint_key!: string;
}
/** The source behind an endpoint, or null. */
export const findEndpoint = query<EmitterState | null>()('catalog.emitter.find-endpoint', FindEndpoint);
