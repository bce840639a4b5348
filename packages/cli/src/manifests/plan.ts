import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { relative, resolve } from 'node:path';
import type { AutoSubscription, Component, PropDefinition, SluiceClient, Source, Webhook } from '@sluice/client';
import { type Place, placesIn, readComponent } from '../code/component-file.js';
import { isSame } from '../code/deploy.js';
import { isNoId } from '../resources/find.js';
import { CliError, isNotFound, usageError } from '../session/errors.js';
import { type AccountState, readState } from './account-state.js';
import { ACCOUNT, checkTypes, isObject, type Manifest, resolved } from './manifest.js';
import { endNamed, type ManifestNames, sourceNames, webhookNames } from './names.js';
import { DEFAULT_SET, externalIdOf, ownerOf } from './owner.js';
import { isSameValue, MADE, MASK, timerForm } from './prop-values.js';

/** The limit of the API. */
const LONGEST_EXTERNAL_ID = 128;

export type Action = 'create' | 'update' | 'delete' | 'none';

/** One step that makes the account what the manifests say. */
export interface Step {
  action: Action;
  /** For people: the kind and name of the resource. */
  what: string;
  /** The fields that differ. */
  changes: string[];
  /** The fields that only Sluice can compare: secrets, which are never returned, and code at a URL. */
  uncertain: string[];
  /** Of a deletion: whether the manifest describes the resource. */
  isOf?(manifest: Manifest): boolean;
  /** Carries it out. Resolves with false if nothing has changed. */
  run(): Promise<unknown>;
}

interface PlanOptions {
  prune?: boolean;
  set?: string;
  env: Record<string, string | undefined>;
  /** Called when a step has sent the code of a component. */
  onCode?: (componentId: string, placeOf: Place) => Promise<void>;
}

/**
 * The steps, in the order in which they can run. A step may need what an earlier one creates, so ids are looked up when it runs. A source or webhook is
 * the one that `apply` created from this name, or else the one that has this name; the latter is changed, but never pruned.
 */
export class Plan {
  /** The kinds and names of the manifests. */
  private readonly keys: ReadonlySet<string>;
  /** The ids of the resources of the manifests, as far as they exist. */
  private readonly ids = new Map<string, string>();
  /** The ids of what `--prune` does not delete. */
  private readonly kept = new Set<string>();
  /** The names of the manifests of an export, by id. */
  private readonly exportedNames: ManifestNames;
  /** By key and by id: many sources may have the same component. */
  private readonly registered = new Map<string, Component>();
  private readonly components = new Map<string, Component>();
  /** By the id of a webhook: its manifest of an export, if it is named by a number or an id, unlike one that was written by hand. */
  private readonly numbered = new Map<string, Manifest>();

  private constructor(
    private readonly sluice: SluiceClient,
    private readonly env: Record<string, string | undefined>,
    private readonly state: AccountState,
    private readonly manifests: Manifest[],
    private readonly set: string,
    private readonly onCode: NonNullable<PlanOptions['onCode']> = async () => {},
  ) {
    this.keys = new Set(manifests.map(({ kind, name }) => `${kind} ${name}`));
    this.exportedNames = { webhooks: webhookNames(state.webhooks), sources: sourceNames(state.sources) };
    const manifestsOfWebhooks = new Map(this.ofKind('Webhook').map((manifest) => [manifest.name, manifest]));
    for (const { id, name } of state.webhooks) {
      const manifest = manifestsOfWebhooks.get(this.exportedNames.webhooks.get(id)!);
      if (manifest && manifest.name !== name && manifest.spec.name === name) this.numbered.set(id, manifest);
    }
    for (const auto of state.autoSubscriptions) this.keepSubscriptionsOf(auto);
  }

  static async of(
    sluice: SluiceClient,
    manifests: Manifest[],
    { prune = false, set = DEFAULT_SET, env, onCode }: PlanOptions,
  ): Promise<Step[]> {
    const plan = new Plan(sluice, env, await readState(sluice), manifests, set, onCode);
    const steps: Step[] = [];
    for (const manifest of plan.ofKind('Component')) steps.push(await plan.component(manifest));
    for (const manifest of plan.ofKind('Webhook')) steps.push(plan.webhook(manifest));
    for (const manifest of plan.ofKind('Source')) steps.push(await plan.source(manifest));
    for (const manifest of plan.ofKind('Subscription')) steps.push(plan.subscription(manifest));
    return prune ? [...steps, ...plan.pruned()] : steps;
  }

  private ofKind(kind: Manifest['kind']): Manifest[] {
    return this.manifests.filter((manifest) => manifest.kind === kind);
  }

  private externalId({ name, origin }: Manifest): string {
    const id = externalIdOf({ set: this.set, name });
    if (id.length > LONGEST_EXTERNAL_ID)
      throw usageError(`${origin}: the external id ${id} is too long: shorten the name or the set by ${id.length - LONGEST_EXTERNAL_ID}`);
    return id;
  }

  /**
   * The item that `apply` created from the manifest, or else the first of the candidates that was created in another way, and is that of no other manifest.
   *
   * @param hasName whether an item has the name of the manifest, so that it must not belong to another set
   */
  private existing<T extends Source | Webhook>(
    manifest: Manifest,
    items: T[],
    { candidates, hasName }: { candidates: T[]; hasName: (item: T) => boolean },
  ): T | undefined {
    const externalId = this.externalId(manifest);
    const own = items.find(({ external_id }) => external_id === externalId);
    const found = own ?? candidates.find((item) => !this.kept.has(item.id) && ownerOf(item) === undefined);
    if (found) return found;
    const named = items.filter((item) => hasName(item) && !this.kept.has(item.id));
    const other = named.map(ownerOf).find((owner) => owner !== undefined && owner.set !== this.set);
    if (other)
      throw usageError(
        `${manifest.origin}: a ${manifest.kind.toLowerCase()} ${manifest.name} belongs to the set ${other.set}: add --set ${other.set}, or choose another name`,
      );
    return undefined;
  }

  private async component(manifest: Manifest): Promise<Step> {
    const { body, placeOf } = await this.code(manifest);
    const { component_code } = body;
    const known = await this.componentNamed(manifest.name, 'id,code_hash');
    const key = `Component ${manifest.name}`;
    const isSame = known !== undefined && component_code !== undefined && known.code_hash === hashOf(component_code);
    if (isSame) this.ids.set(key, known.id);
    return {
      ...{
        action: isSame ? 'none' : known ? 'update' : 'create',
        what: `component ${manifest.name}`,
        changes: isSame || !known ? [] : ['code'],
        uncertain: [],
      },
      run: async () => {
        const { data } = await this.sluice.createComponent({ body: { component_code } });
        this.ids.set(key, data.id);
        const named = await this.componentNamed(manifest.name, 'id');
        if (named?.id !== data.id)
          throw usageError(`${manifest.origin}: created, but the key of the component must be its metadata.name, ${manifest.name}`);
        if (placeOf) await this.onCode(data.id, placeOf);
      },
    };
  }

  /** Undefined if no component has the key. */
  private componentNamed(key: string, include: string): Promise<Component | undefined> {
    return this.sluice.getComponent({ path: { keyOrId: key }, query: { include } }).then(
      ({ data }) => data,
      (error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      },
    );
  }

  private webhook(manifest: Manifest): Step {
    const spec = resolved(manifest.spec, manifest, this.env) as Record<string, never>;
    checkTypes(manifest, spec);
    const { url, name = manifest.name, ...rest } = spec;
    if (url === undefined) throw usageError(`${manifest.origin}: spec.url is required`);
    const { webhooks } = this.state;
    // several may have the same name, or none
    const hasName = (each: Webhook): boolean => each.name === name && (name !== null || each.url === url);
    // a webhook of a numbered manifest belongs to no other one
    const free = webhooks.filter(({ id }) => (this.numbered.get(id) ?? manifest) === manifest);
    const ofExport = free.filter(({ id }) => id === manifest.name || this.numbered.has(id));
    const named = free.filter(hasName);
    const ofUrl = named.filter((each) => each.url === url);
    const first = ofUrl.filter(({ id }) => this.exportedNames.webhooks.get(id) === manifest.name);
    const candidates = [...ofExport, ...first, ...ofUrl, ...named];
    const found = this.existing(manifest, webhooks, { candidates, hasName });
    const wanted: Record<string, unknown> = { url, name, description: null, active: true, rate_limit: null, ...rest };
    const changes = found
      ? Object.keys(wanted).filter((field) => !isDeepStrictEqual(wanted[field], (found as Record<string, unknown>)[field] ?? null))
      : [];
    if (found) this.found(manifest, found.id);
    return {
      ...{ action: !found ? 'create' : changes.length > 0 ? 'update' : 'none', what: `webhook ${manifest.name}`, changes, uncertain: [] },
      run: async () => {
        if (found) return this.sluice.patchWebhook({ path: { id: found.id }, body: wanted });
        const { active, ...parameters } = wanted;
        const given = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null));
        // a description may be too long for the query; the types of the client lack the JSON body that the API takes instead
        const request = { body: { ...given, external_id: this.externalId(manifest) } };
        const { data } = await this.sluice.createWebhook(request as never);
        this.found(manifest, data.id);
        if (active === false) await this.sluice.patchWebhook({ path: { id: data.id }, body: { active } }).catch(stillOn(data.id));
      },
    };
  }

  private async source(manifest: Manifest): Promise<Step> {
    const { name = manifest.name, active = true, component } = manifest.spec as { name?: string; active?: boolean; component?: unknown };
    // each on its own: the props of a source whose only prop is called valueFrom are not from elsewhere
    const written = Object.entries(manifest.spec.props ?? {}).map(([prop, value]) => [prop, resolved(value, manifest, this.env)]);
    // a prop without a value is one that the source should not have
    const props = Object.fromEntries(written.filter(([, value]) => value !== null)) as Record<string, unknown>;
    const { sources } = this.state;
    const hasName = (each: Source): boolean => each.name_slug === manifest.name;
    // one that has the name of another manifest as its slug, or in an export, belongs to that manifest
    const isFree = ({ id, name_slug }: Source): boolean => {
      const exportedName = this.exportedNames.sources.get(id)!;
      return exportedName === manifest.name || ![name_slug, exportedName].some((each) => this.keys.has(`Source ${each}`));
    };
    const named = sources.filter((each) => each.name === name && isFree(each));
    const found = this.existing(manifest, sources, { candidates: [...sources.filter(hasName), ...named], hasName });
    const [other] = named.filter((each) => each !== found && ownerOf(each) === undefined);
    if (found && other && !hasName(found) && ownerOf(found) === undefined)
      throw usageError(
        `${manifest.origin}: several sources are called ${name}: ${found.name_slug}, ${other.name_slug}; use the slug of one of them as metadata.name`,
      );
    const choice = await this.choice(manifest, component);
    const moves = found !== undefined && choice.body.component_url === undefined && (await this.isOtherComponent(found, choice));
    const definitions = found ? await this.definitions(found, props) : new Map<string, PropDefinition>();
    const given = found ? { ...props, ...this.removedProps(found, props, { definitions, moves }) } : props;
    const { changes, uncertain } = found
      ? this.sourceChanges(found, { name, active, props: given, choice, definitions, moves })
      : { changes: [], uncertain: [] };
    if (found) this.found(manifest, found.id);
    return {
      ...{ action: !found ? 'create' : changes.length > 0 ? 'update' : 'none', what: `source ${manifest.name}`, changes, uncertain },
      run: async () => {
        const body = { ...this.choiceBody(manifest, choice), name };
        if (found) {
          const { data } = await this.sluice.patchSource({ path: { id: found.id }, body: { ...body, active, configured_props: given } });
          if (choice.placeOf) await this.onCode(data.component_id, choice.placeOf);
          return !isSame(found, data);
        }
        const { data } = await this.sluice.createSource({
          body: { ...body, configured_props: props, external_id: this.externalId(manifest) },
        });
        this.found(manifest, data.id);
        if (!active) await this.sluice.patchSource({ path: { id: data.id }, body: { active } }).catch(stillOn(data.id));
        if (choice.placeOf) await this.onCode(data.component_id, choice.placeOf);
      },
    };
  }

  /** The props that the component of the source defines, by name; none if nothing about them must be known to compare the values. */
  private async definitions({ component_id, configured_props }: Source, props: Record<string, unknown>): Promise<Definitions> {
    const isClear = (prop: string): boolean => Object.hasOwn(props, prop) && timerForm(props[prop]) === props[prop];
    if (Object.keys(configured_props).every(isClear)) return new Map();
    const { configurable_props } = await this.componentOf(component_id);
    return new Map(configurable_props.map((definition) => [definition.name, definition]));
  }

  private sourceChanges(
    found: Source,
    { name, active, props, choice, definitions, moves }: WantedSource,
  ): Pick<Step, 'changes' | 'uncertain'> {
    const [changes, uncertain]: [string[], string[]] = [[], []];
    if (found.name !== name) changes.push('name');
    if (found.active !== active) changes.push('active');
    if (choice.body.component_url !== undefined) uncertain.push('component');
    else if (moves) changes.push('component');
    for (const [prop, value] of Object.entries(props)) {
      const now = Object.hasOwn(found.configured_props, prop) ? found.configured_props[prop] : undefined;
      if (value === null) changes.push(`props.${prop}`);
      else if (JSON.stringify(now ?? null).includes(MASK)) uncertain.push(`props.${prop}`);
      else if (!isSameValue(definitions.get(prop), value, now)) changes.push(`props.${prop}`);
    }
    return { changes, uncertain };
  }

  /**
   * null for each value that the source has and the manifest does not name, except what Sluice makes and the defaults of its component.
   *
   * @param moves whether the source gets another component, which may lack the prop or have another default
   */
  private removedProps(
    { configured_props }: Source,
    props: Record<string, unknown>,
    { definitions, moves }: { definitions: Definitions; moves: boolean },
  ): Record<string, null> {
    const extra = Object.keys(configured_props).filter((prop) => !Object.hasOwn(props, prop));
    const isRemoved = (prop: string): boolean => {
      const definition = definitions.get(prop);
      return !MADE.includes(definition?.type ?? '') && (moves || !isSameValue(definition, configured_props[prop], definition?.default));
    };
    return Object.fromEntries(extra.filter(isRemoved).map((prop) => [prop, null]));
  }

  private async isOtherComponent(found: Source, { named, body: { component_id, component_code, key } }: Choice): Promise<boolean> {
    // without an id, the component is created or updated by an earlier step
    if (named !== undefined || component_id !== undefined) return component_id !== found.component_id;
    if (key !== undefined) return this.registered.get(key)?.id !== found.component_id;
    return (await this.componentOf(found.component_id)).code_hash !== hashOf(component_code ?? '');
  }

  private async componentOf(keyOrId: string): Promise<Component> {
    const known = this.components.get(keyOrId);
    if (known) return known;
    const { data } = await this.sluice.getComponent({ path: { keyOrId }, query: { include: 'code_hash,configurable_props' } });
    this.components.set(keyOrId, data);
    return data;
  }

  /** Throws a usage error if the registry has no component of this key: otherwise `apply` would end in the middle. */
  private async requireRegistered({ origin }: Manifest, key: string): Promise<void> {
    if (this.registered.has(key)) return;
    const unknown = usageError(`${origin}: the registry has no component ${key}; sluice list components lists them`);
    if (isNoId(key)) throw unknown;
    const { data } = await this.sluice.getRegisteredComponent({ path: { key } }).catch((error: unknown) => {
      throw isNotFound(error) ? unknown : error;
    });
    this.registered.set(key, data);
  }

  private async choice(manifest: Manifest, component: unknown): Promise<Choice> {
    if (!isObject(component)) throw usageError(`${manifest.origin}: spec.component must have file, code, url, key, id or name`);
    const { key, id, name } = component as Record<string, string | undefined>;
    if (key !== undefined) {
      await this.requireRegistered(manifest, key);
      return { body: { key } };
    }
    if (id !== undefined) return { body: { component_id: id } };
    if (name !== undefined) {
      if (!this.keys.has(`Component ${name}`)) throw usageError(`${manifest.origin}: there is no Component ${name}`);
      return { body: { component_id: this.ids.get(`Component ${name}`) }, named: name };
    }
    return this.code({ ...manifest, spec: component });
  }

  private choiceBody(manifest: Manifest, { named, body }: Choice): Choice['body'] {
    return named === undefined ? body : { component_id: this.idOf(manifest, `Component ${named}`) };
  }

  private async code({ spec, folder, origin }: Manifest): Promise<Choice> {
    const { file, code, url } = spec as Record<string, string | undefined>;
    if (file !== undefined) {
      const { code: component_code, placeOf } = await readComponent(relative(process.cwd(), resolve(folder, file))).catch(
        (error: unknown) => {
          throw error instanceof CliError ? new CliError(`${origin}: ${error.message}`, error.code) : error;
        },
      );
      return { body: { component_code }, placeOf };
    }
    if (code !== undefined) return { body: { component_code: code }, placeOf: placesIn(`${origin}, code`) };
    if (url !== undefined) return { body: { component_url: url }, placeOf: placesIn(url) };
    throw usageError(`${origin}: one of file, code and url is required`);
  }

  private subscription(manifest: Manifest): Step {
    const { emitter, listener, event_name = '', auto = false } = manifest.spec as Record<string, never>;
    const stream = streamOf(event_name);
    const what = subscriptionText(auto ? 'of later emitters' : String(emitter), String(listener), stream);
    if (auto) {
      const listenerId = this.knownEnd(manifest, listener);
      const isKnown = this.state.autoSubscriptions.some((each) => streamOf(each.event_name) === stream && each.listener_id === listenerId);
      if (listenerId !== undefined) this.keepSubscriptionsOf({ listener_id: listenerId, event_name });
      const run = (): Promise<unknown> =>
        this.sluice.createAutoSubscription({ query: { listener_id: this.end(manifest, listener), event_name: stream || 'default' } });
      return { action: isKnown ? 'none' : 'create', what, changes: [], uncertain: [], run };
    }
    const ends = (): { emitter_id: string; listener_id: string } => ({
      emitter_id: this.end(manifest, emitter),
      listener_id: this.end(manifest, listener),
    });
    const [emitterId, listenerId] = [this.knownEnd(manifest, emitter), this.knownEnd(manifest, listener)];
    const known = this.state.subscriptions.find(
      (each) => each.emitter_id === emitterId && each.listener_id === listenerId && streamOf(each.event_name) === stream,
    );
    if (known) this.kept.add(known.id);
    return {
      ...{ action: known ? 'none' : 'create', what, changes: [], uncertain: [] },
      run: () => this.sluice.createSubscription({ query: { ...ends(), event_name } }),
    };
  }

  /** The same, or undefined if an earlier step creates it. Throws if nothing has that name. */
  private knownEnd(manifest: Manifest, text: unknown): string | undefined {
    const [, kind, name = ''] = /^(source|webhook)\/(.+)$/s.exec(String(text)) ?? [];
    if (kind === undefined) return this.end(manifest, text);
    const key = `${kind === 'source' ? 'Source' : 'Webhook'} ${name}`;
    if (!this.keys.has(key)) {
      const found = kind === 'source' ? this.sourceNamed(manifest, name) : this.webhookNamed(name);
      if (!found) throw usageError(`${manifest.origin}: there is no ${kind} ${name}, neither in the manifests nor in the account`);
      this.ids.set(key, found.id);
      this.kept.add(found.id);
    }
    return this.ids.get(key);
  }

  /** The source of the account that has the slug, or else the only one that has the name. */
  private sourceNamed({ origin }: Manifest, name: string): Source | undefined {
    const { sources } = this.state;
    const named = sources.filter((each) => each.name === name);
    const found = sources.find(({ name_slug }) => name_slug === name);
    if (!found && named.length > 1)
      throw usageError(`${origin}: several sources are called ${name}: ${named.map(({ name_slug }) => name_slug).join(', ')}`);
    return found ?? named[0];
  }

  /** The webhook of the account that has the name, or else the one that has it in an export. */
  private webhookNamed(name: string): Webhook | undefined {
    const { webhooks } = this.state;
    return webhooks.find((each) => each.name === name) ?? webhooks.find(({ id }) => this.exportedNames.webhooks.get(id) === name);
  }

  /**
   * The id of an emitter or listener: `source/NAME` or `webhook/NAME` of a manifest or of the account, `account` for all its emitters, or an id or glob
   * as the API takes it.
   */
  private end(manifest: Manifest, text: unknown): string {
    if (typeof text !== 'string') throw usageError(`${manifest.origin}: spec.emitter and spec.listener are required`);
    if (text === ACCOUNT) return this.state.accountId;
    const [, kind, name] = /^(source|webhook)\/(.+)$/s.exec(text) ?? [];
    if (kind === undefined) {
      if (!/^(dc|p|wh|u)_./.test(text))
        throw usageError(`${manifest.origin}: ${text} is not an end of a subscription: write source/NAME, webhook/NAME, account or an id`);
      const { sources, webhooks } = this.state;
      if (/^(dc|wh)_\w+$/.test(text) && ![...sources, ...webhooks].some(({ id }) => id === text))
        throw usageError(`${manifest.origin}: there is no ${text.startsWith('dc_') ? 'source' : 'webhook'} ${text} in the account`);
      return text;
    }
    return this.idOf(manifest, `${kind === 'source' ? 'Source' : 'Webhook'} ${name}`);
  }

  private idOf({ origin }: Manifest, key: string): string {
    const id = this.ids.get(key);
    if (id === undefined) throw usageError(`${origin}: there is no ${key}`);
    return id;
  }

  private found({ kind, name }: Manifest, id: string): void {
    this.ids.set(`${kind} ${name}`, id);
    this.kept.add(id);
  }

  /** Keeps the subscriptions that an auto-subscription may have created: it does not create them again. */
  private keepSubscriptionsOf(auto: Pick<AutoSubscription, 'listener_id' | 'event_name'>): void {
    for (const { id, listener_id, event_name } of this.state.subscriptions)
      if (listener_id === auto.listener_id && streamOf(event_name) === streamOf(auto.event_name)) this.kept.add(id);
  }

  /** Deletes what `apply` created from this set and the manifests no longer contain; of the subscriptions, those between two such resources. */
  private pruned(): Step[] {
    const { accountId, sources, webhooks, subscriptions } = this.state;
    const end = (id: string): string => endNamed(id, accountId, this.exportedNames);
    const ours = new Map([...sources, ...webhooks].filter((item) => ownerOf(item)?.set === this.set).map((item) => [item.id, item]));
    const isGone = ({ id }: { id: string }): boolean => ours.has(id) && !this.kept.has(id);
    const kindOf = (item: Source | Webhook): 'Source' | 'Webhook' => ('name_slug' in item ? 'Source' : 'Webhook');
    const isMadeFrom = ({ kind, name }: Manifest, item: Source | Webhook): boolean => kind === kindOf(item) && name === ownerOf(item)?.name;
    /** Whether a manifest may name the source or webhook like this, as an end of a subscription. */
    const isEnd = (text: unknown, id: string): boolean => {
      const item = ours.get(id)!;
      const names = [ownerOf(item)?.name, item.name, ...('name_slug' in item ? [item.name_slug] : [])];
      return text === id || names.some((name) => text === `${kindOf(item).toLowerCase()}/${name}`);
    };
    const deletion = (what: string, isOf: Step['isOf'], run: Step['run']): Step => ({
      ...{ action: 'delete', what, changes: [], uncertain: [], isOf, run },
    });
    return [
      ...subscriptions
        .filter(({ id, emitter_id, listener_id }) => ours.has(listener_id) && ours.has(emitter_id) && !this.kept.has(id))
        .map(({ emitter_id, listener_id, event_name }) =>
          deletion(
            subscriptionText(end(emitter_id), end(listener_id), streamOf(event_name)),
            ({ kind, spec: { emitter, listener, event_name: stream = '' } }) =>
              kind === 'Subscription' &&
              isEnd(emitter, emitter_id) &&
              isEnd(listener, listener_id) &&
              streamOf(stream as string) === streamOf(event_name),
            () => this.sluice.deleteSubscription({ query: { emitter_id, listener_id, event_name } }),
          ),
        ),
      ...sources.filter(isGone).map((source) =>
        deletion(
          `source ${source.name_slug}`,
          (manifest) => isMadeFrom(manifest, source),
          () => this.sluice.deleteSource({ path: { id: source.id } }),
        ),
      ),
      ...webhooks.filter(isGone).map((webhook) =>
        deletion(
          `webhook ${webhook.name ?? webhook.id}`,
          (manifest) => isMadeFrom(manifest, webhook),
          () => this.sluice.deleteWebhook({ path: { id: webhook.id } }),
        ),
      ),
    ];
  }
}

type Definitions = ReadonlyMap<string, PropDefinition>;

interface Choice {
  body: { component_id?: string; component_code?: string; component_url?: string; key?: string };
  placeOf?: Place;
  /** The name of a manifest of a component. */
  named?: string;
}

/** A source as its manifest describes it, and what the comparison needs to know. */
interface WantedSource {
  name: string;
  active: boolean;
  /** null: it must not have the prop. */
  props: Record<string, unknown>;
  choice: Choice;
  /** Of the component that it has. */
  definitions: Definitions;
  /** Whether it gets another one. */
  moves: boolean;
}

/** The API creates sources and webhooks switched on. Throws the reason why one could not be switched off, with the remedy. */
const stillOn =
  (id: string) =>
  (error: Error): never => {
    throw Object.assign(error, { message: `created, but still on: sluice off ${id}; ${error.message}` });
  };

const subscriptionText = (emitter: string, listener: string, stream: string): string =>
  `subscription ${emitter} → ${listener}${stream ? ` (${stream})` : ''}`;

/** The API keeps event names as they were sent, and has two for the default stream. */
const streamOf = (eventName: string): string => (eventName === 'default' ? '' : eventName);

const hashOf = (code: string): string => createHash('sha256').update(code, 'utf8').digest('hex');
