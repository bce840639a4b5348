import { IsBoolean, IsInt, isObject, IsOptional, IsString, ValidateBy } from 'class-validator';
import { CodeSource } from './components.js';
import { command, query } from './contract.js';
import { Invalid } from './errors.js';
import { type ComponentId, IsId, type SourceId, type UserId } from './ids.js';
import { type LargePage, LargePageRequest } from './page.js';
import { ChoosesComponent, IsExternalId, IsText, MayBeAbsent, SelectsExternalId, SOURCE_NAME_LENGTH } from './values.js';

/** A source as the API returns it. Times are Unix seconds. */
export interface Source {
  id: SourceId;
  /** The owner; omitted in lists. */
  user_id?: UserId;
  component_id: ComponentId;
  configured_props: Record<string, unknown>;
  active: boolean;
  created_at: number;
  updated_at: number;
  name: string;
  name_slug: string;
  /** The user's own id of it; omitted if there is none. */
  external_id?: string;
}

/** The component of a source: component_id takes precedence over component_code, that over component_url, and that over key. */
export class ComponentChoice extends CodeSource {
  @ChoosesComponent()
  component_id?: string;

  @ChoosesComponent('component_id') override component_code?: string;
  @ChoosesComponent('component_id', 'component_code') override component_url?: string;

  @ChoosesComponent('component_id', 'component_code', 'component_url')
  key?: string;
}

/** Of the JSON of the configured props. */
export const CONFIGURED_PROPS_BYTES = 64 * 1024;
export const PROPS_TOO_LARGE = `configured_props must be at most ${CONFIGURED_PROPS_BYTES} bytes of JSON`;

/**
 * Values by prop. The catalog limits them again, together with those that the source keeps. Before that, it looks up the connections that they name: without
 * this limit, these could be very many.
 */
const IsConfiguredProps = (): PropertyDecorator =>
  ValidateBy({
    name: 'isConfiguredProps',
    validator: {
      validate: (value: unknown) => isObject(value) && Buffer.byteLength(JSON.stringify(value)) <= CONFIGURED_PROPS_BYTES,
      defaultMessage: (args) => (isObject(args?.value) ? PROPS_TOO_LARGE : 'configured_props must be an object'),
    },
  });

/** The fields that create or replace a source. */
export class NewSource extends ComponentChoice {
  @IsOptional()
  @IsText(SOURCE_NAME_LENGTH)
  name?: string | null;

  @IsExternalId()
  external_id?: string | null;

  @IsOptional()
  @IsConfiguredProps()
  configured_props?: Record<string, unknown> | null;
}

export class CreateSource extends NewSource {
  /** The id of the new source, so that a repeated command creates one source. */
  @IsId('source') id!: SourceId;
  /** The id of the component that is created if code is given. */
  @IsId('component') new_component_id!: ComponentId;
  @IsId('user') owner_id!: UserId;
}
export const createSource = command<Source>()('catalog.source.create', CreateSource, { secret: true });

export class UpdateSource extends NewSource {
  @IsId('user') owner_id!: UserId;
  @IsId('source') id!: SourceId;
  @IsId('component') new_component_id!: ComponentId;
  @MayBeAbsent() @IsBoolean({ message: 'active must be true or false' }) active?: boolean;
}
export const updateSource = command<Source>()('catalog.source.update', UpdateSource, { secret: true });

/** A merge patch of a source (RFC 7396): omitted fields keep their values. Without a component, the source keeps the one it has. */
export class SourcePatch extends ComponentChoice {
  @IsOptional()
  @IsText(SOURCE_NAME_LENGTH)
  name?: string | null;

  @IsExternalId()
  external_id?: string | null;

  @MayBeAbsent()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;

  @MayBeAbsent()
  @IsConfiguredProps()
  configured_props?: Record<string, unknown>;
}

export class PatchSource extends SourcePatch {
  @IsId('user') owner_id!: UserId;
  @IsId('source') id!: SourceId;
  @IsId('component') new_component_id!: ComponentId;
}
export const patchSource = command<Source>()('catalog.source.patch', PatchSource, { secret: true });

const COMPONENT_FIELDS = ['component_id', 'component_code', 'component_url', 'key'] as const;

/** null counts as absent. */
export const givesComponent = (choice: ComponentChoice): boolean =>
  COMPONENT_FIELDS.some((field) => choice[field] !== undefined && choice[field] !== null);

/**
 * For what creates or replaces a source. Throws Invalid. A malformed request is always 400, so this is validated before anything is looked up, and by the
 * gateway, too: it would otherwise report a malformed id first, as 404.
 */
export function requireComponent(choice: ComponentChoice): void {
  if (givesComponent(choice)) return;
  throw new Invalid([{ field: 'component_id', message: 'one of component_id, component_code, component_url and key is required' }]);
}

/** In a merge patch, null removes a field, but a source cannot be without a component. Throws Invalid. */
export function requireKeptComponent(patch: ComponentChoice): void {
  if (givesComponent(patch)) return;
  const problems = COMPONENT_FIELDS.filter((field) => patch[field] === null).map((field) => ({
    field,
    message: `${field} must not be null: a source always has a component`,
  }));
  if (problems.length > 0) throw new Invalid(problems);
}

/** One source of an owner. */
export class SourceReference {
  @IsId('user') owner_id!: UserId;
  @IsId('source') id!: SourceId;
}

export class GetSource extends SourceReference {
  /** Omits the URLs of endpoints, which are secrets: anyone who knows one can run the source. */
  @IsOptional() @IsBoolean() without_endpoints?: boolean;
}
export const getSource = query<Source>()('catalog.source.get', GetSource, { secret: true });
export const deleteSource = command<void>()('catalog.source.delete', SourceReference);

export class ListSources extends LargePageRequest {
  @IsId('user') owner_id!: UserId;
  @SelectsExternalId() external_id?: string;
  /** As of `GetSource`. */
  @IsOptional() @IsBoolean() without_endpoints?: boolean;
}
export const listSources = query<LargePage<Source>>()('catalog.source.list', ListSources, { secret: true });

export class SwitchOffSource extends SourceReference {
  /** That of its deployment: what its owner has changed since then stays as it is. */
  @IsInt() version!: number;
  /** One line for the log. */
  @IsString() reason!: string;
}
/** Sent by the runtime for a source whose code repeatedly ends its process. Only a user can switch the source on again. Returns whether it was on, in this version. */
export const switchOffSource = command<boolean>()('catalog.source.switch-off', SwitchOffSource);
