import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import {
  type ComponentId,
  type ConnectionId,
  type EmitterState,
  type PropDefinition,
  runsAtATime,
  type Schedule,
  type Source,
  type SourceId,
  type StoredProps,
  unixSeconds,
  type UserId,
} from '#contracts';
import { endpointUrl } from '#config';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';
import { ComponentRow } from '../components/component.entity.js';
import { VERSION } from '../database/version.js';
import { HTTP } from './prop-values.js';
import { maskedValue } from './secret-props.js';
import type { InlineConnection, UsedCredentials } from './source-connections.js';

/** For this long after its creation, a source is new: other services may not have received the fact yet. */
export const NEW_MS = 30_000;

@Entity('source')
@Unique('source_owner_id_name_slug_key', ['owner_id', 'name_slug'])
@Unique('source_endpoint_key_key', ['endpoint_key'])
@Index('source_external_id', ['owner_id', 'external_id'], { unique: true, where: 'external_id IS NOT NULL' })
@Index('source_by_owner', ['owner_id', 'id'])
@Index('source_of_component', ['component_id'])
export class SourceRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: SourceId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  component_id!: ComponentId;

  /** The component that it runs. Only a part of it is read, never its code. */
  @ManyToOne(() => ComponentRow)
  @JoinColumn({ name: 'component_id', foreignKeyConstraintName: 'source_component_id_fkey' })
  component!: Relation<ComponentRow>;

  @Column('text')
  name!: string;

  @Column(BYTEWISE_TEXT)
  name_slug!: string;

  /** The user's own id of it. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  external_id!: string | null;

  /** The configured props, without defaults. */
  @Column('json')
  configured_props!: StoredProps;

  /**
   * The encrypted credentials of the connections that it uses, by id; null: none. Large: rows of a list have only those of inline connections, and rows that
   * TypeORM reads have none unless they are requested.
   */
  @Column('jsonb', { nullable: true, select: false })
  credentials!: UsedCredentials | null;

  /** By timer prop. */
  @Column('json')
  schedules!: Record<string, Schedule>;

  /** The secret part of the endpoint's URL. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  endpoint_key!: string | null;

  @Column('boolean', { default: true })
  active!: boolean;

  /** Its account is suspended: it counts as inactive. */
  @Column('boolean', { default: false })
  suspended!: boolean;

  @Column(VERSION)
  version!: number;

  @Column(CREATED_AT)
  created_at!: Date;

  @Column(CREATED_AT)
  updated_at!: Date;
}

/** The fields that a create or an update sets. */
export type SourceChange = Pick<SourceRow, 'component_id' | 'name' | 'external_id' | 'configured_props' | 'schedules' | 'active'> & {
  /** The connections that it uses, and those of them that are stored with it. */
  uses?: ConnectionId[];
  inline?: InlineConnection[];
  /** Where the slug begins; the repository makes it unique in the account. */
  slug: string;
  /** The new endpoint key, unless the source has one. */
  endpoint_key: string | null;
};

export const usesConnections = ({ uses = [] }: SourceChange): boolean => uses.length > 0;

export const propsOf = (row: SourceRow): PropDefinition[] => row.component.inspected.description.configurable_props;

const endpointProp = (row: SourceRow): PropDefinition | undefined => propsOf(row).find(({ type }) => type === HTTP);

/** The source as the API returns it; without the owner in lists. values: the configured ones, decrypted. endpointsUrl null: endpoints are not shown. */
export function sourceOf(row: SourceRow, values: Record<string, unknown>, endpointsUrl: string | null, { inList = false } = {}): Source {
  return {
    id: row.id,
    ...(inList ? {} : { user_id: row.owner_id }),
    component_id: row.component_id,
    configured_props: shownProps(row, values, endpointsUrl),
    active: row.active,
    created_at: unixSeconds(row.created_at),
    updated_at: unixSeconds(row.updated_at),
    name: row.name,
    name_slug: row.name_slug,
    ...(row.external_id === null ? {} : { external_id: row.external_id }),
  };
}

/** The user's values with masked secrets, timers and the endpoint as responses show them, in the order of the component's props. */
function shownProps(row: SourceRow, values: Record<string, unknown>, endpointsUrl: string | null): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const prop of propsOf(row)) {
    const { name, type } = prop;
    const schedule = Object.hasOwn(row.schedules, name) ? row.schedules[name] : undefined;
    if (type === HTTP) shown[name] = endpointsUrl === null ? {} : endpointOf(row, endpointsUrl);
    else if (schedule)
      shown[name] = {
        cron: schedule.cron,
        interval_seconds: schedule.interval_seconds,
        ...(schedule.cron !== null && schedule.timezone ? { timezone: schedule.timezone } : {}),
      };
    else if (Object.hasOwn(values, name)) shown[name] = maskedValue(prop, values[name]);
  }
  return shown;
}

const endpointOf = ({ endpoint_key }: SourceRow, endpointsUrl: string) => ({
  endpoint_url: endpoint_key === null ? null : endpointUrl(endpointsUrl, endpoint_key),
});

/** An account that is suspended: no source is created, and workflows that are registered are suspended, too. */
@Entity('suspended_account')
export class SuspendedAccountRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  owner_id!: UserId;
}

/**
 * A source that was deleted in the last days. A service may read its events before the fact that it existed; a repeated command must not create it again.
 */
@Entity('deleted_source')
export class DeletedSourceRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: SourceId;

  /** The last one, without the name and the deployment. */
  @Column('json')
  state!: EmitterState;

  @Index('deleted_source_age')
  @Column(CREATED_AT)
  deleted_at!: Date;
}

/** The columns of a state without its deployment. */
export type BareStateRow = Pick<SourceRow, 'id' | 'owner_id' | 'active' | 'suspended' | 'version' | 'name' | 'created_at'>;

/** The state without its deployment. */
export const bareState = (row: BareStateRow, deleted = false): EmitterState => ({
  emitter_id: row.id,
  kind: 'source',
  owner_id: row.owner_id,
  ...activity(row, deleted),
  deleted,
  version: row.version,
  name: row.name,
  created_at_ms: row.created_at.getTime(),
});

/** The state that the fact `catalog.emitter.changed` reports. */
export const sourceState = (row: SourceRow, { deleted = false } = {}): EmitterState => ({
  ...bareState(row, deleted),
  deployment: {
    code_hash: row.component.code_hash,
    // the topic of these facts keeps the last one: a deleted source leaves no secrets there
    configured_props: deleted ? {} : row.configured_props,
    ...(row.credentials === null || deleted ? {} : { credentials: row.credentials }),
    schedules: row.schedules,
    endpoint_key: endpointProp(row) ? row.endpoint_key : null,
    name_slug: row.name_slug,
    hooks: row.component.inspected.description.hooks,
    runs_at_a_time: runsAtATime(row.component.inspected.description),
  },
});

/** Whether an emitter is active, and whether it is inactive only because its account is suspended. */
export const activity = ({ active, suspended }: { active: boolean; suspended: boolean }, deleted: boolean) => ({
  active: active && !suspended && !deleted,
  ...(active && suspended && !deleted && { suspended: true }),
});

/** The name in lower case, with a `-` for each sequence of characters other than `[a-z0-9]`, trimmed; `source` if nothing is left. */
export function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return slug || 'source';
}

/** Numbers of slugs that are looked up together. */
const LOOKED_UP = 64;

/**
 * The slug, with a free suffix `-1`, `-2`, … if it is taken: the first one, unless it is above 64 and numbers were freed. `takenOf` returns those of the
 * slugs that are taken; it is called a few times however many are.
 */
export async function freeSlug(slug: string, takenOf: (slugs: string[]) => Promise<ReadonlySet<string>>): Promise<string> {
  const numbered = (n: number): string => (n === 0 ? slug : `${slug}-${n}`);
  let numbers = [...Array(LOOKED_UP).keys(), ...Array.from({ length: 24 }, (_, power) => LOOKED_UP * 2 ** power)];
  // the free number is above the one and not above the other
  for (let [taken, free] = [-1, Infinity]; ;) {
    const found = await takenOf(numbers.map(numbered));
    const index = numbers.findIndex((n) => !found.has(numbered(n)));
    if (index >= 0) free = numbers[index]!;
    if (index !== 0) taken = numbers.at(index < 0 ? -1 : index - 1)!;
    if (free - taken === 1) return numbered(free);
    const step = Math.ceil((free - taken) / LOOKED_UP);
    numbers = [];
    for (let n = taken + step; n < free; n += step) numbers.push(n);
  }
}
