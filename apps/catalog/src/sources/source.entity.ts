import {
  type ComponentId,
  type EmitterState,
  type Hook,
  type PropDefinition,
  type Schedule,
  type Source,
  type SourceId,
  type UserId,
} from '#contracts';
import { unixSeconds } from '../components/component.entity.js';
import { HTTP } from './prop-values.js';

/** A source with what its component says of it, as the repository reads it. */
export interface SourceRow {
  id: SourceId;
  owner_id: UserId;
  component_id: ComponentId;
  code_hash: string;
  props: PropDefinition[];
  hooks: Hook[];
  name: string;
  name_slug: string;
  configured_props: Record<string, unknown>;
  schedules: Record<string, Schedule>;
  endpoint_key: string | null;
  active: boolean;
  version: number;
  created_at: Date;
  updated_at: Date;
}

/** What a create or an update decides of a source. */
export type SourceChange = Pick<SourceRow, 'component_id' | 'name' | 'configured_props' | 'schedules' | 'active'> & {
  /** Where the slug begins; the repository makes it unique in the account. */
  slug: string;
  /** The endpoint key to have from now on, unless there is one already. */
  endpoint_key: string | null;
};

const endpointProp = (row: SourceRow): PropDefinition | undefined => row.props.find(({ type }) => type === HTTP);

/** As the API answers it; in lists without the owner. */
export function sourceOf(row: SourceRow, endpointsUrl: string, { inList = false } = {}): Source {
  return {
    id: row.id,
    ...(inList ? {} : { user_id: row.owner_id }),
    component_id: row.component_id,
    configured_props: shownProps(row, endpointsUrl),
    active: row.active,
    created_at: unixSeconds(row.created_at),
    updated_at: unixSeconds(row.updated_at),
    name: row.name,
    name_slug: row.name_slug,
  };
}

/** The user's values; timers and the endpoint in the form in which they are read. In the order of the component's props. */
function shownProps(row: SourceRow, endpointsUrl: string): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const { name, type } of row.props) {
    const schedule = row.schedules[name];
    if (type === HTTP) shown[name] = { endpoint_url: `${endpointsUrl}/${row.endpoint_key}` };
    else if (schedule)
      shown[name] = {
        cron: schedule.cron,
        interval_seconds: schedule.interval_seconds,
        ...(schedule.cron !== null && schedule.timezone ? { timezone: schedule.timezone } : {}),
      };
    else if (Object.hasOwn(row.configured_props, name)) shown[name] = row.configured_props[name];
  }
  return shown;
}

/** As the other rooms are told of it. */
export const sourceState = (row: SourceRow, { deleted = false } = {}): EmitterState => ({
  emitter_id: row.id,
  kind: 'source',
  owner_id: row.owner_id,
  active: row.active && !deleted,
  deleted,
  version: row.version,
  name: row.name,
  created_at_ms: row.created_at.getTime(),
  deployment: {
    code_hash: row.code_hash,
    configured_props: row.configured_props,
    schedules: row.schedules,
    endpoint_key: endpointProp(row) ? row.endpoint_key : null,
    name_slug: row.name_slug,
    hooks: row.hooks,
  },
});
