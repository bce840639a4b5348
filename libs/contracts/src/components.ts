import { integer } from '#config';
import { IsInt, IsObject, IsOptional, IsString } from 'class-validator';
import { ApiProperty, ApiPropertyOptional, PickType } from '@nestjs/swagger';
import { command, query } from './contract.js';
import type { Hook } from './emitters.js';
import { type ComponentId, IsId, type UserId } from './ids.js';
import { type Page, PageRequest } from './page.js';
import { IsText } from './text.js';

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

/** What the runtime reads from a component's code. */
export interface ComponentDescription {
  name: string;
  key: string | null;
  version: string | null;
  description: string | null;
  dedupe: 'unique' | 'greatest' | 'last' | null;
  /** The number of runs of one source that may be in progress at a time. */
  concurrency: number;
  hooks: Hook[];
  has_run: boolean;
  configurable_props: PropDefinition[];
}

/** A component as the API returns it. Times are Unix seconds. */
export class Component {
  @ApiProperty({ type: String, example: 'sc_0Vg2mXq1Zk3TnB7cYw' }) id!: ComponentId;
  @ApiProperty({ description: 'The full code, as submitted.' }) code!: string;
  @ApiProperty({ description: 'SHA-256 of the UTF-8 code, in lower-case hex.' }) code_hash!: string;
  @ApiProperty() name!: string;
  @ApiProperty({ type: String, nullable: true }) version!: string | null;
  @ApiProperty({
    type: 'array',
    description: 'In the order of declaration; additional attributes of a prop are returned unchanged.',
    items: {
      type: 'object',
      required: ['name', 'type'],
      properties: {
        name: { type: 'string' },
        type: { type: 'string' },
        label: { type: 'string' },
        description: { type: 'string' },
        default: {},
      },
      additionalProperties: true,
    },
  })
  configurable_props!: PropDefinition[];
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) updated_at!: number;
}

/** Where the code of a component comes from: the first field that is present is used. */
export class CodeSource {
  @ApiPropertyOptional({ description: 'The full component code.' })
  @IsOptional()
  @IsText()
  component_code?: string;

  @ApiPropertyOptional({ description: 'The http or https URL of the code.' })
  // beside component_code the URL is only stored, so it may then be any text
  @IsOptional()
  @IsText()
  component_url?: string;
}

export class CreateComponent extends CodeSource {
  /** The id of the new component, so that a repeated command creates one component. */
  @IsId('component') id!: ComponentId;
  @IsId('user') owner_id!: UserId;
}
export const createComponent = command<Component>()('catalog.component.create', CreateComponent);

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
export class RegisteredComponent extends PickType(Component, ['id', 'name', 'version', 'configurable_props']) {
  @ApiProperty({ example: 'http-request' }) key!: string;
  @ApiProperty({ type: String, nullable: true }) description!: string | null;
}
export class ListRegistry extends PageRequest {}
export const listRegistry = query<Page<RegisteredComponent>>()('catalog.registry.list', ListRegistry);

export class GetCode {
  @IsString() code_hash!: string;
}
/** The code with a given hash, and its description. Neither ever changes. */
export interface ComponentCodeReply {
  code: string;
  description: ComponentDescription;
}
export const getCode = query<ComponentCodeReply>()('catalog.component.get-code', GetCode);

/** The account and deadline of an inspection: accounts take turns, and an inspection that nobody waits for any more is not started. */
class ForCaller {
  @IsOptional()
  @IsId('user')
  owner_id?: UserId;

  /** When the sender stops waiting, in ms since the epoch. */
  @IsOptional()
  @IsInt()
  answer_by?: number;
}

export class InspectComponent extends ForCaller {
  @IsString() code!: string;
}
/** Asks the runtime to evaluate code in a temporary process. Invalid code is rejected with `invalid`, the reason and the line. */
export const inspectComponent = query<ComponentDescription>()('runtime.component.inspect', InspectComponent);

export class BundleComponent extends ForCaller {
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
