import type {
  ApiKey,
  AutoSubscription,
  Connection,
  RegisteredComponent,
  SluiceClient,
  Source,
  Subscription,
  Webhook,
} from '@sluice/client';
import { type Column, time } from '../session/output.js';

/** A kind of resource, as the commands `list`, `get` and `delete` know it. */
export interface Kind<T = never> {
  /** In the singular; the plural has an s. */
  name: string;
  aliases?: string[];
  /** Of its ids. */
  prefix: string;
  columns: Column<T>[];
  /** The columns of a table, if they have more than the items themselves contain. */
  tableColumns?(sluice: SluiceClient): Promise<Column<T>[]>;
  /** All of the account; of components, those of the registry. */
  list(sluice: SluiceClient): AsyncIterable<T>;
  /** The names by which people refer to it, in addition to its id. */
  names(item: T): (string | null | undefined)[];
  /** Texts that are not its name, and that others may have, too: enough to search and to show it, but not to delete it. */
  labels?(item: T): string[];
  /** A command that creates one. */
  howToCreate?: string;
  /** Whether the list is not the account's: a name stands for an item of the account first, and `get` knows items that the list does not contain. */
  isListPublic?: boolean;
  get?(sluice: SluiceClient, id: string): Promise<{ data: unknown }>;
  delete?(sluice: SluiceClient, item: T): Promise<unknown>;
  setActive?(sluice: SluiceClient, id: string, active: boolean): Promise<{ data: unknown }>;
}

const ID: Column<{ id: string }> = ['ID', ({ id }) => id];
const state = ({ active }: { active: boolean }): string => (active ? 'on' : 'off');

export const SOURCES: Kind<Source> = {
  name: 'source',
  howToCreate: 'sluice deploy http-request --name orders',
  prefix: 'dc_',
  columns: [
    ID,
    ['NAME', ({ name_slug }) => name_slug],
    ['STATE', state],
    ['UPDATED', ({ updated_at }) => time(updated_at)],
    ['ENDPOINT', ({ configured_props }) => likelyEndpoint(configured_props)],
  ],
  list: (sluice) => sluice.each((query) => sluice.listSources({ query })),
  names: ({ name_slug, name, external_id }) => [name_slug, name, external_id],
  get: (sluice, id) => sluice.getSource({ path: { id } }),
  delete: (sluice, { id }) => sluice.deleteSource({ path: { id } }),
  setActive: (sluice, id, active) => sluice.patchSource({ path: { id }, body: { active } }),
};

export const WEBHOOKS: Kind<Webhook> = {
  name: 'webhook',
  howToCreate: 'sluice subscribe SOURCE https://… --name inbox',
  prefix: 'wh_',
  columns: [ID, ['NAME', ({ name }) => name], ['STATE', state], ['URL', ({ url }) => url]],
  list: (sluice) => sluice.each((query) => sluice.listWebhooks({ query })),
  names: ({ name, external_id, url }) => [name, external_id, url],
  get: (sluice, id) => sluice.getWebhook({ path: { id } }),
  delete: (sluice, { id }) => sluice.deleteWebhook({ path: { id } }),
  setActive: (sluice, id, active) => sluice.patchWebhook({ path: { id }, body: { active } }),
};

/** The name of each source and webhook by its id, for people. Other ids, such as that of a workflow, are their own names. */
export async function namesOfEnds(sluice: SluiceClient): Promise<(id: string) => string> {
  const names = new Map<string, string>();
  for await (const { id, name_slug } of SOURCES.list(sluice)) names.set(id, name_slug);
  for await (const { id, name } of WEBHOOKS.list(sluice)) if (name) names.set(id, name);
  return (id) => names.get(id) ?? id;
}

const SUBSCRIPTIONS: Kind<Subscription> = {
  name: 'subscription',
  howToCreate: 'sluice subscribe SOURCE WEBHOOK',
  prefix: 'sub_',
  columns: [],
  tableColumns: async (sluice) => {
    const nameOf = await namesOfEnds(sluice);
    return [
      ID,
      ['EMITTER', ({ emitter_id }) => nameOf(emitter_id)],
      ['STREAM', ({ event_name }) => event_name || 'default'],
      ['LISTENER', ({ listener_id }) => nameOf(listener_id)],
    ];
  },
  list: async function* (sluice) {
    yield* (await sluice.listSubscriptions()).data;
  },
  names: () => [],
  delete: (sluice, { emitter_id, listener_id, event_name }) =>
    sluice.deleteSubscription({ query: { emitter_id, listener_id, event_name } }),
};

const AUTO_SUBSCRIPTIONS: Kind<AutoSubscription> = {
  name: 'auto-subscription',
  prefix: 'asub_',
  columns: [],
  tableColumns: async (sluice) => {
    const nameOf = await namesOfEnds(sluice);
    return [ID, ['STREAM', ({ event_name }) => event_name || 'default'], ['LISTENER', ({ listener_id }) => nameOf(listener_id)]];
  },
  list: async function* (sluice) {
    yield* (await sluice.listAutoSubscriptions()).data;
  },
  names: () => [],
  delete: (sluice, { listener_id, event_name }) => sluice.deleteAutoSubscription({ query: { listener_id, event_name } }),
};

export const COMPONENTS: Kind<RegisteredComponent> = {
  name: 'component',
  aliases: ['registry'],
  prefix: 'sc_',
  columns: [
    ['KEY', ({ key }) => key],
    ['VERSION', ({ version }) => version],
    ['NAME', ({ name }) => name],
    ['DESCRIPTION', ({ description }) => description],
  ],
  list: (sluice) => sluice.each((query) => sluice.listRegistry({ query })),
  names: ({ key, name }) => [key, name],
  isListPublic: true,
  get: (sluice, keyOrId) => sluice.getComponent({ path: { keyOrId } }),
};

export const CONNECTIONS: Kind<Connection> = {
  name: 'connection',
  howToCreate: 'sluice api createConnection --data @connection.json',
  prefix: 'apn_',
  columns: [ID, ['APP', ({ app }) => app], ['NAME', ({ name }) => name], ['CREATED', ({ created_at }) => time(created_at)]],
  list: (sluice) => sluice.each((query) => sluice.listConnections({ query })),
  names: ({ name }) => [name],
  labels: ({ app }) => [app],
  get: (sluice, id) => sluice.getConnection({ path: { id } }),
  delete: (sluice, { id }) => sluice.deleteConnection({ path: { id } }),
};

const KEYS: Kind<ApiKey> = {
  name: 'key',
  prefix: 'key_',
  columns: [
    ID,
    ['NAME', ({ name }) => name],
    ['SCOPE', ({ scope }) => scope],
    ['PREFIX', ({ prefix }) => prefix],
    ['LAST USED', ({ last_used_at }) => time(last_used_at)],
  ],
  list: (sluice) => sluice.each((query) => sluice.listKeys({ query })),
  names: ({ name }) => [name],
  labels: ({ prefix }) => [prefix],
  delete: (sluice, { id }) => sluice.deleteKey({ path: { id } }),
};

export const KINDS = [SOURCES, WEBHOOKS, SUBSCRIPTIONS, AUTO_SUBSCRIPTIONS, COMPONENTS, CONNECTIONS, KEYS] as unknown as Kind<{
  id: string;
}>[];

/** The kind with this name, in the singular or plural. */
export const kindNamed = (word: string): Kind<{ id: string }> | undefined =>
  KINDS.find(({ name, aliases = [] }) => [name, `${name}s`, ...aliases].includes(word));

const endpointIn = (value: unknown): string | undefined => {
  const url = (value as { endpoint_url?: unknown } | null | undefined)?.endpoint_url;
  return typeof url === 'string' ? url : undefined;
};

/** The URL that is probably that of a source's HTTP endpoint, for lists, which do not read components: another prop may have the same form. */
const likelyEndpoint = (props: Record<string, unknown>): string | undefined =>
  Object.values(props)
    .map(endpointIn)
    .find((url) => url !== undefined);

/** The URL of a source's HTTP endpoint, if it has one: the value of the prop of this type of its component. */
export async function endpointOf(
  sluice: SluiceClient,
  { component_id, configured_props }: Pick<Source, 'component_id' | 'configured_props'>,
): Promise<string | undefined> {
  if (likelyEndpoint(configured_props) === undefined) return undefined;
  const { data } = await sluice.getComponent({ path: { keyOrId: component_id }, query: { include: 'configurable_props' } });
  const prop = data.configurable_props.find(({ type }) => type === '$.interface.http');
  return prop && endpointIn(configured_props[prop.name]);
}
