import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import type { Component, SluiceClient, Source, Webhook } from '@sluice/client';
import { COMPONENTS } from '../resources/kinds.js';
import type { Session } from '../session/session.js';
import { API_VERSION, isObject, type ManifestKind } from './manifest.js';
import { OWNER, readState } from './plan.js';

const MASK = '••••••••';
/** Props whose values Sluice makes. */
const MADE = ['$.service.db', '$.interface.http'];

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
  const document = (kind: ManifestKind, name: string | undefined, spec: Document['spec']): Document => ({
    ...{ apiVersion: API_VERSION, kind },
    ...(name === undefined ? {} : { metadata: { name } }),
    spec: Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)),
  });
  // oldest first, so that importing keeps the order
  const names = new Map<string, string>();
  const nameAll = <T extends Source | Webhook>(items: T[], kind: string, text: (item: T) => string): T[] =>
    items.toReversed().map((item) => {
      const taken = [...names.values()];
      const wanted = item.external_id?.startsWith(OWNER) ? item.external_id.slice(OWNER.length) : text(item);
      let name = wanted;
      for (let n = 2; taken.includes(`${kind}/${name}`); n++) name = `${wanted}-${n}`;
      names.set(item.id, `${kind}/${name}`);
      return item;
    });
  const nameOf = (id: string): string => names.get(id)?.replace(/^\w+\//, '') ?? id;
  const orderedWebhooks = nameAll(webhooks, 'webhook', ({ name, id }) => name || id);
  const orderedSources = nameAll(sources, 'source', ({ name_slug }) => name_slug);
  const components = new Map<string, Component>();
  for (const { component_id: keyOrId } of sources)
    if (!components.has(keyOrId)) components.set(keyOrId, (await sluice.getComponent({ path: { keyOrId } })).data);

  const componentOf = ({ component_id, name_slug }: Source): object => {
    const key = registered.get(component_id);
    if (key !== undefined) return { key };
    const { code } = components.get(component_id)!;
    if (!files) return { code };
    files.set(`components/${name_slug}.mjs`, code);
    return { file: `components/${name_slug}.mjs` };
  };
  return [
    ...orderedWebhooks.map(({ id, name, url, description, active, rate_limit }) =>
      document('Webhook', nameOf(id), {
        url,
        name: name === nameOf(id) ? undefined : name,
        description: description ?? undefined,
        active: active ? undefined : false,
        rate_limit,
      }),
    ),
    ...orderedSources.map((source) =>
      document('Source', nameOf(source.id), {
        component: componentOf(source),
        name: source.name === nameOf(source.id) ? undefined : source.name,
        active: source.active ? undefined : false,
        props: propsOf(source, components.get(source.component_id)!),
      }),
    ),
    ...subscriptions.map(({ emitter_id, listener_id, event_name }) =>
      document('Subscription', undefined, {
        emitter: names.get(emitter_id) ?? emitter_id,
        listener: names.get(listener_id) ?? listener_id,
        event_name: event_name || undefined,
      }),
    ),
    ...autoSubscriptions.map(({ listener_id, event_name }) =>
      document('Subscription', `auto ${event_name || 'default'} ${nameOf(listener_id)}`, {
        ...{ auto: true, listener: names.get(listener_id) ?? listener_id },
        event_name: event_name || undefined,
      }),
    ),
  ];
}

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
