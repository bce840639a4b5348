import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import type { Component, SluiceClient, Source, Webhook } from '@sluice/client';
import { COMPONENTS } from '../resources/kinds.js';
import type { Session } from '../session/session.js';
import { API_VERSION, isObject, type ManifestKind } from './manifest.js';
import { ownerOf } from './owner.js';
import { MADE, MASK, readState } from './plan.js';

interface Document {
  apiVersion: string;
  kind: ManifestKind;
  metadata?: { name: string };
  spec: Record<string, unknown>;
}

/** `sluice export [DIR]`: manifests of the whole account, for `apply`. Without a folder, one stream of YAML documents with the code inside. */
export async function exportAll(session: Session, folder: string | undefined): Promise<void> {
  const files = new Map<string, string>();
  const documents = await manifestsOf(session.sluice, folder === undefined ? undefined : files);
  const secrets = JSON.stringify(documents).match(/"env":"SLUICE_SECRET_\w+"/g) ?? [];
  if (secrets.length > 0) session.warn(`${secrets.length} secret(s) are not exported: set the variables SLUICE_SECRET_… before you apply`);
  const text = documents.map((document) => `---\n${dump(document, { noRefs: true, lineWidth: -1 })}`).join('');
  if (folder === undefined) return session.print(text);
  mkdirSync(join(folder, 'components'), { recursive: true });
  for (const [file, content] of files) writeFileSync(join(folder, file), content);
  writeFileSync(join(folder, 'sluice.yaml'), text);
  session.note(`wrote ${documents.length} manifests and ${files.size} component(s) to ${folder}`);
}

/** @param files gets the code of components, by path; without it, the code is inside the manifests */
async function manifestsOf(sluice: SluiceClient, files: Map<string, string> | undefined): Promise<Document[]> {
  const { sources, webhooks, subscriptions, autoSubscriptions } = await readState(sluice);
  const registered = new Map<string, string>();
  for await (const { id, key } of COMPONENTS.list(sluice)) registered.set(id, key);
  const components = await componentsOf(sluice, sources);
  const names = new Names();
  // oldest first, so that importing keeps the order
  const orderedWebhooks = names.addAll(webhooks.toReversed(), 'webhook', ({ name, id }) => name || id);
  const orderedSources = names.addAll(sources.toReversed(), 'source', ({ name_slug }) => name_slug);

  const componentOf = ({ component_id, name_slug }: Source): object => {
    const key = registered.get(component_id);
    if (key !== undefined) return { key };
    const { code } = components.get(component_id)!;
    if (!files) return { code };
    files.set(`components/${name_slug}.mjs`, code);
    return { file: `components/${name_slug}.mjs` };
  };
  return [
    ...orderedWebhooks.map((webhook) => webhookDocument(webhook, names)),
    ...orderedSources.map((source) =>
      sourceDocument(source, names, { component: componentOf(source), props: propsOf(source, components.get(source.component_id)!) }),
    ),
    ...subscriptions.map(({ emitter_id, listener_id, event_name }) =>
      document('Subscription', undefined, {
        emitter: names.reference(emitter_id),
        listener: names.reference(listener_id),
        event_name: event_name || undefined,
      }),
    ),
    ...autoSubscriptions.map(({ listener_id, event_name }) =>
      document('Subscription', `auto ${event_name || 'default'} ${names.of(listener_id)}`, {
        ...{ auto: true, listener: names.reference(listener_id) },
        event_name: event_name || undefined,
      }),
    ),
  ];
}

/** The names of sources and webhooks in manifests, each unique among those of its kind. */
class Names {
  private readonly byId = new Map<string, string>();

  /** An item that `apply` created keeps its name; another one gets its text, with a number if the name is taken. Returns the items. */
  addAll<T extends Source | Webhook>(items: T[], kind: string, text: (item: T) => string): T[] {
    for (const item of items) {
      const taken = [...this.byId.values()];
      const wanted = ownerOf(item)?.name || text(item);
      let name = wanted;
      for (let n = 2; taken.includes(`${kind}/${name}`); n++) name = `${wanted}-${n}`;
      this.byId.set(item.id, `${kind}/${name}`);
    }
    return items;
  }

  of(id: string): string {
    return this.byId.get(id)?.replace(/^\w+\//, '') ?? id;
  }

  /** With the kind, for other manifests. */
  reference(id: string): string {
    return this.byId.get(id) ?? id;
  }
}

/** By the ids that the sources have. */
async function componentsOf(sluice: SluiceClient, sources: Source[]): Promise<Map<string, Component>> {
  const components = new Map<string, Component>();
  for (const { component_id: keyOrId } of sources)
    if (!components.has(keyOrId)) components.set(keyOrId, (await sluice.getComponent({ path: { keyOrId } })).data);
  return components;
}

function webhookDocument({ id, name, url, description, active, rate_limit }: Webhook, names: Names): Document {
  return document('Webhook', names.of(id), {
    url,
    name: name === names.of(id) ? undefined : name,
    description: description ?? undefined,
    active: active ? undefined : false,
    rate_limit,
  });
}

function sourceDocument({ id, name, active }: Source, names: Names, { component, props }: { component: object; props: unknown }): Document {
  return document('Source', names.of(id), {
    component,
    name: name === names.of(id) ? undefined : name,
    active: active ? undefined : false,
    props,
  });
}

const document = (kind: ManifestKind, name: string | undefined, spec: Document['spec']): Document => ({
  ...{ apiVersion: API_VERSION, kind },
  ...(name === undefined ? {} : { metadata: { name } }),
  spec: Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)),
});

/** The values that a user has configured; each secret is read from a variable. */
function propsOf(source: Source, { configurable_props }: Component): Record<string, unknown> | undefined {
  const made = configurable_props.filter(({ type }) => MADE.includes(type)).map(({ name }) => name);
  const variable = (path: string[]): string =>
    `SLUICE_SECRET_${[source.name_slug, ...path]
      .join('_')
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')}`;
  const unmasked = (value: unknown, path: string[]): unknown => {
    if (value === MASK) return { valueFrom: { env: variable(path) } };
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unmasked(each, [...path, name])]));
  };
  const kept = Object.entries(source.configured_props).filter(([name]) => !made.includes(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept.map(([name, value]) => [name, unmasked(value, [name])]));
}
