import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Component, SluiceClient, Source, Webhook } from '@sluice/client';
import { COMPONENTS, CONNECTIONS } from '../resources/kinds.js';
import { usageError } from '../session/errors.js';
import { replaceFile, writeTo } from '../session/files.js';
import { asYaml, counted } from '../session/output.js';
import type { Session } from '../session/session.js';
import { readState } from './account-state.js';
import { API_VERSION, isFromElsewhere, isObject, LONGEST_NAME, type ManifestKind } from './manifest.js';
import { DistinctNames, endNamed, sourceNames, webhookNames } from './names.js';
import { ownerOf } from './owner.js';
import { MADE, MASK, TIMER, writtenTimer } from './prop-values.js';

interface Document {
  apiVersion: string;
  kind: ManifestKind;
  metadata?: { name: string };
  spec: Record<string, unknown>;
}

/** `sluice export [DIR]`: manifests of the whole account, for `apply`. Without a folder, one stream of YAML documents with the code inside. */
export async function exportAll(session: Session, folder: string | undefined): Promise<void> {
  if (['json', 'ndjson'].includes(session.format)) throw usageError('sluice export writes YAML: it has no other output formats');
  const files = new Map<string, string>();
  const { documents, warnings } = await manifestsOf(session.sluice, folder === undefined ? undefined : files);
  for (const warning of warnings) session.warn(warning);
  const text = documents.map((document) => `---\n${asYaml(document)}`).join('');
  if (folder === undefined) return session.print(text);
  writeTo(folder, () => {
    mkdirSync(files.size > 0 ? join(folder, 'components') : folder, { recursive: true });
    for (const [file, content] of files) replaceFile(join(folder, file), content);
    replaceFile(join(folder, 'sluice.yaml'), text);
  });
  const components = files.size > 0 ? ` and ${counted(files.size, 'component')}` : '';
  session.note(`wrote ${counted(documents.length, 'manifest')}${components} to ${folder}`);
}

/** @param files gets the code of components, by path; without it, the code is inside the manifests */
async function manifestsOf(
  sluice: SluiceClient,
  files: Map<string, string> | undefined,
): Promise<{ documents: Document[]; warnings: string[] }> {
  const { accountId, sources, webhooks, subscriptions, autoSubscriptions } = await readState(sluice);
  const registered = new Map<string, string>();
  for await (const { id, key } of COMPONENTS.list(sluice)) registered.set(id, key);
  const connections = new Map<string, string>();
  for await (const { id, name } of CONNECTIONS.list(sluice)) connections.set(id, name);
  const components = await componentsOf(sluice, sources);
  const variables = new Variables(connections);
  const names = { webhooks: webhookNames(webhooks), sources: sourceNames(sources) };
  const end = (id: string): string => endNamed(id, accountId, names);

  const componentOf = ({ id, component_id, name_slug }: Source): object => {
    const key = registered.get(component_id);
    if (key !== undefined) return { key };
    const { code } = components.get(component_id)!;
    if (!files) return { code };
    // a slug of Sluice contains no separator, but another server must not choose the folder
    const file = `components/${basename(name_slug.length > LONGEST_NAME ? id : name_slug)}.mjs`;
    files.set(file, code);
    return { file };
  };
  const documents = [
    // oldest first, so that importing keeps the order
    ...webhooks.toReversed().map((webhook) => webhookDocument(webhook, names.webhooks.get(webhook.id)!)),
    ...sources.toReversed().map((source) =>
      sourceDocument(source, names.sources.get(source.id)!, {
        component: componentOf(source),
        props: propsOf(source, components.get(source.component_id)!, variables),
      }),
    ),
    ...subscriptions.toReversed().map(({ emitter_id, listener_id, event_name }) =>
      document('Subscription', undefined, {
        emitter: end(emitter_id),
        listener: end(listener_id),
        event_name: event_name || undefined,
      }),
    ),
    ...autoSubscriptions.toReversed().map(({ listener_id, event_name }) =>
      document('Subscription', undefined, {
        ...{ auto: true, listener: end(listener_id) },
        event_name: event_name || undefined,
      }),
    ),
  ];
  return {
    documents,
    warnings: [
      ...variables.warnings(),
      ...workflowWarnings([...subscriptions, ...autoSubscriptions]),
      ...externalIdWarnings([...sources, ...webhooks]),
    ],
  };
}

function workflowWarnings(subscriptions: { emitter_id?: string; listener_id: string }[]): string[] {
  const ends = new Set(subscriptions.flatMap(({ emitter_id = '', listener_id }) => [emitter_id, listener_id]));
  const workflows = [...ends].filter((id) => /^p_(?!\*)/.test(id));
  if (workflows.length === 0) return [];
  return [`${workflows.length} workflow(s) are not exported, but must exist before you apply: ${workflows.join(', ')}`];
}

/** `apply` uses the external id for its own mark, so that of a user has no place in a manifest. */
function externalIdWarnings(items: (Source | Webhook)[]): string[] {
  const lost = items.filter((item) => item.external_id !== undefined && ownerOf(item) === undefined);
  if (lost.length === 0) return [];
  return [`${lost.length} external id(s) are not exported, because apply sets its own: ${lost.map(({ id }) => id).join(', ')}`];
}

/** By the ids that the sources have. */
async function componentsOf(sluice: SluiceClient, sources: Source[]): Promise<Map<string, Component>> {
  const components = new Map<string, Component>();
  for (const { component_id: keyOrId } of sources)
    if (!components.has(keyOrId)) components.set(keyOrId, (await sluice.getComponent({ path: { keyOrId } })).data);
  return components;
}

/** @param manifestName here and below: the name of the manifest */
function webhookDocument({ name, url, description, active, rate_limit }: Webhook, manifestName: string): Document {
  return document('Webhook', manifestName, {
    url,
    name: name === manifestName ? undefined : name,
    description: description ?? undefined,
    active: active ? undefined : false,
    rate_limit,
  });
}

function sourceDocument(
  { name, active }: Source,
  manifestName: string,
  { component, props }: { component: object; props: unknown },
): Document {
  return document('Source', manifestName, {
    component,
    name: name === manifestName ? undefined : name,
    active: active ? undefined : false,
    props,
  });
}

const document = (kind: ManifestKind, name: string | undefined, spec: Document['spec']): Document => ({
  ...{ apiVersion: API_VERSION, kind },
  ...(name === undefined ? {} : { metadata: { name } }),
  spec: Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)),
});

const SECRET = 'SLUICE_SECRET_';
const CONNECTION = 'SLUICE_CONNECTION_';

/** The variables from which `apply` reads secrets and the ids of connections. */
class Variables {
  private readonly byKey = new Map<string, string>();
  private readonly distinct = new DistinctNames();

  /** @param connections the names of connections by id */
  constructor(private readonly connections: ReadonlyMap<string, string>) {}

  secret(path: string[], { json }: { json: boolean }): object {
    const env = this.variable(SECRET, JSON.stringify(path), path);
    return { valueFrom: json ? { env, json } : { env } };
  }

  connection(id: string): object {
    return { valueFrom: { env: this.variable(CONNECTION, id, [this.connections.get(id) ?? id]) } };
  }

  warnings(): string[] {
    const count = (prefix: string): number => [...this.byKey.values()].filter((name) => name.startsWith(prefix)).length;
    const [secrets, connections] = [count(SECRET), count(CONNECTION)];
    return [
      ...(secrets > 0 ? [`${secrets} secret(s) are not exported: set the variables ${SECRET}… before you apply`] : []),
      ...(connections > 0
        ? [`${connections} connection(s) are not exported: create them, and set the variables ${CONNECTION}… to their ids before you apply`]
        : []),
    ];
  }

  /** The same key has the same variable; another key with the same words has a number. */
  private variable(prefix: string, key: string, words: string[]): string {
    const known = this.byKey.get(key);
    if (known !== undefined) return known;
    const wanted =
      prefix +
      words
        .join('_')
        .toUpperCase()
        .replace(/[^A-Z0-9]+/g, '_');
    const variable = this.distinct.add((end) => wanted + end, '_');
    this.byKey.set(key, variable);
    return variable;
  }
}

/** The values that a user has configured, without secrets and without ids that only this account has. */
function propsOf(source: Source, { configurable_props }: Component, variables: Variables): Record<string, unknown> | undefined {
  const types = new Map(configurable_props.map(({ name, type }) => [name, type]));
  // credentials of an app have no type: usually they are texts
  const isText = (path: string[]): boolean => path.length > 1 || types.get(path[0]!) === 'string';
  const unmasked = (value: unknown, path: string[]): unknown => {
    if (value === MASK) return variables.secret([source.name_slug, ...path], { json: !isText(path) });
    if (Array.isArray(value)) return value.map((each, n) => unmasked(each, [...path, String(n)]));
    if (!isObject(value)) return value;
    // otherwise apply would read the variable or file, which a user of the account has chosen
    if (isFromElsewhere(value)) return { valueFrom: { value } };
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unmasked(each, [...path, name])]));
  };
  const kept = Object.entries(source.configured_props).filter(([name]) => !MADE.includes(types.get(name) ?? ''));
  if (kept.length === 0) return undefined;
  return Object.fromEntries(
    kept.map(([name, value]) => {
      if (types.get(name) === TIMER) return [name, writtenTimer(value)];
      const written = unmasked(value, [name]);
      return [name, types.get(name) === 'app' ? withoutConnectionId(written, variables) : written];
    }),
  );
}

/** The value of an `app` prop: its inline credentials, whose connection only this source has, or a named connection from a variable. */
function withoutConnectionId(value: unknown, variables: Variables): unknown {
  if (!isObject(value) || typeof value.authProvisionId !== 'string') return value;
  const { authProvisionId, ...rest } = value;
  const hasCredentials = isObject(rest.$auth) && Object.keys(rest.$auth).length > 0;
  return hasCredentials ? rest : { ...rest, authProvisionId: variables.connection(authProvisionId) };
}
