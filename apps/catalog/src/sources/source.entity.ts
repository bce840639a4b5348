import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import type { ComponentId, EmitterState, PropDefinition, Schedule, Source, SourceId, UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';
import { ComponentRow, unixSeconds } from '../components/component.entity.js';
import { HTTP } from './prop-values.js';

@Entity('source')
@Unique('source_owner_id_name_slug_key', ['owner_id', 'name_slug'])
@Unique('source_endpoint_key_key', ['endpoint_key'])
@Index('source_by_owner', ['owner_id', 'id'])
export class SourceRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: SourceId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  component_id!: ComponentId;

  /** What it runs; read without the code itself. */
  @ManyToOne(() => ComponentRow)
  @JoinColumn({ name: 'component_id', foreignKeyConstraintName: 'source_component_id_fkey' })
  component!: Relation<ComponentRow>;

  @Column('text')
  name!: string;

  @Column(BYTEWISE_TEXT)
  name_slug!: string;

  /** What the user configured, without defaults. */
  @Column('json')
  configured_props!: Record<string, unknown>;

  /** By timer prop. */
  @Column('json')
  schedules!: Record<string, Schedule>;

  /** The secret part of the endpoint's URL. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  endpoint_key!: string | null;

  @Column('boolean', { default: true })
  active!: boolean;

  /** Increases with each change. */
  @Column('int', { default: 1 })
  version!: number;

  @Column(CREATED_AT)
  created_at!: Date;

  @Column(CREATED_AT)
  updated_at!: Date;
}

/** The fields that a create or an update sets. */
export type SourceChange = Pick<SourceRow, 'component_id' | 'name' | 'configured_props' | 'schedules' | 'active'> & {
  /** Where the slug begins; the repository makes it unique in the account. */
  slug: string;
  /** The new endpoint key, unless the source has one. */
  endpoint_key: string | null;
};

const propsOf = (row: SourceRow): PropDefinition[] => row.component.inspected.description.configurable_props;

const endpointProp = (row: SourceRow): PropDefinition | undefined => propsOf(row).find(({ type }) => type === HTTP);

/** As the API returns it; in lists without the owner. */
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
  for (const { name, type } of propsOf(row)) {
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

/** As the fact `catalog.emitter.changed` reports it. */
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
    code_hash: row.component.code_hash,
    configured_props: row.configured_props,
    schedules: row.schedules,
    endpoint_key: endpointProp(row) ? row.endpoint_key : null,
    name_slug: row.name_slug,
    hooks: row.component.inspected.description.hooks,
  },
});
