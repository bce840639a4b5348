import { integer } from '#config';
import { IsObject, IsOptional, IsString } from 'class-validator';
import { command, query } from './contract.js';
import type { Hook } from './emitters.js';
import { type ComponentId, IsId, type UserId } from './ids.js';
import { type LargePage, LargePageRequest } from './page.js';
import { ChoosesComponent } from './values.js';

/** A prop as `configurable_props` shows it: in declaration order, unknown attributes passed through. */
export interface PropDefinition {
  name: string;
  type: string;
  label?: string;
  description?: string;
  optional?: boolean;
  default?: unknown;
  [attribute: string]: unknown;
}

/** A mistake that does not keep a component from running; line and column begin at 1. */
export interface ComponentWarning {
  message: string;
  line: number | null;
  column: number | null;
}

export type DedupeStrategy = 'unique' | 'greatest' | 'last';

/** The description of a component that the runtime reads from its code. */
export interface ComponentDescription {
  name: string;
  key: string | null;
  version: string | null;
  description: string | null;
  dedupe: DedupeStrategy | null;
  /** The number of runs of one source that may be in progress at a time. */
  concurrency: number;
  /** How often a run for an event is repeated if it fails: as often as the schedule allows, or at most this many times; absent: never. */
  retries?: number | 'schedule';
  hooks: Hook[];
  has_run: boolean;
  configurable_props: PropDefinition[];
  /** Absent: none. */
  warnings?: ComponentWarning[];
  /** The exact versions of the installed packages, by specifier; absent: none. */
  packages?: Record<string, string>;
}

/** More runs than an account ever has in progress. */
const MANY_RUNS = 1000;

/** How many runs of a source with the component may be in progress. With dedupe one: the emits of one run decide which emits of the next are duplicates. */
export const runsAtATime = ({ dedupe, concurrency }: Pick<ComponentDescription, 'dedupe' | 'concurrency'>): number =>
  dedupe === null ? Math.min(concurrency, MANY_RUNS) : 1;

/** A component as the API returns it. Times are Unix seconds. */
export interface Component {
  id: ComponentId;
  code: string;
  /** SHA-256 of the UTF-8 code, in lower-case hex. */
  code_hash: string;
  name: string;
  version: string | null;
  configurable_props: PropDefinition[];
  /** Absent: none. */
  warnings?: ComponentWarning[];
  /** The exact versions of the npm packages that were installed for it, by import specifier; absent: none. */
  packages?: Record<string, string>;
  created_at: number;
  updated_at: number;
}

/** Where the code of a component comes from: the first field that is present is used. The URL may contain a password: such a command is secret. */
export class CodeSource {
  @ChoosesComponent()
  component_code?: string;

  @ChoosesComponent('component_code')
  component_url?: string;
}

export class CreateComponent extends CodeSource {
  /** The id of the new component, so that a repeated command creates one component. */
  @IsId('component') id!: ComponentId;
  @IsId('user') owner_id!: UserId;
}
export const createComponent = command<Component>()('catalog.component.create', CreateComponent, { secret: true });

export class GetComponent {
  @IsId('user') owner_id!: UserId;
  @IsString() key_or_id!: string;
}
export const getComponent = query<Component>()('catalog.component.get', GetComponent);

export class GetRegisteredComponent {
  @IsString() key!: string;
}
export const getRegisteredComponent = query<Component>()('catalog.component.get-registered', GetRegisteredComponent);

/** A component of the registry, as lists of it show it: without its code. */
export interface RegisteredComponent extends Pick<Component, 'id' | 'name' | 'version' | 'configurable_props'> {
  key: string;
  description: string | null;
}
export class ListRegistry extends LargePageRequest {}
export const listRegistry = query<LargePage<RegisteredComponent>>()('catalog.registry.list', ListRegistry);

export class GetCode {
  @IsString() code_hash!: string;
}
/** The code with a given hash, and its description. Neither ever changes. */
export interface ComponentCodeReply {
  code: string;
  /** As in InspectedComponent. */
  bundle?: string;
  description: ComponentDescription;
}
export const getCode = query<ComponentCodeReply>()('catalog.component.get-code', GetCode);

/** Accounts take turns. An inspection that nobody waits for any more is not started. */
class InspectionOf {
  /** Absent: the operator */
  @IsOptional()
  @IsId('user')
  owner_id?: UserId;
}

export class InspectComponent extends InspectionOf {
  @IsString() code!: string;
}
export interface InspectedComponent extends ComponentDescription {
  /** The code of the packages that were installed for the component, as an ES module, compressed with Zstandard, in base64; absent: none. */
  bundle?: string;
}
/**
 * Asks the runtime to evaluate code in a temporary process, after it has installed the packages that the code imports. Invalid code is rejected with
 * `invalid`, the reason and the line.
 */
export const inspectComponent = query<InspectedComponent>()('runtime.component.inspect', InspectComponent);

export class BundleComponent extends InspectionOf {
  /** A path of `files`. */
  @IsString() entry!: string;
  /** Code by path, relative to one common folder. */
  @IsObject() files!: Record<string, string>;
}
/** Bundles an entry file and its relative imports into one file. A missing import is rejected with `invalid`. */
export const bundleComponent = query<{ code: string }>()('runtime.component.bundle', BundleComponent);

/** The same limit for the catalog, which stores code, and for the command that validates a component file. */
export const maxCodeBytes = integer('SLUICE_MAX_CODE_BYTES', {
  fallback: 512 * 1024,
  min: 1024,
  description: 'Largest component code, in bytes of UTF-8.',
});
