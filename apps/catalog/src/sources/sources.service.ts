import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import {
  type ComponentChoice,
  type ComponentId,
  type CreateSource,
  cursorOf,
  type EmitterChangeKind,
  type EmitterState,
  idOfCursor,
  Invalid,
  givesComponent,
  type GetSource,
  type LargePage,
  type ListSources,
  NotFound,
  pageOf,
  type PatchSource,
  propsContext,
  randomText,
  requireComponent,
  requireKeptComponent,
  type Source,
  type SourceId,
  type SourcePatch,
  type SourceReference,
  type SwitchOffSource,
  type UpdateSource,
  type UserId,
} from '#contracts';
import type { Session } from '#database';
import { Messages } from '#messaging';
import { LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { CatalogConfig } from '../catalog.config.js';
import type { DescribedComponent, NewComponent } from '../components/component.entity.js';
import { ComponentsService } from '../components/components.service.js';
import { announceChanges } from '../announcements/announce-changes.js';
import type { ConnectionRow } from './connection.entity.js';
import { listedPart } from '../listed-part.js';
import { ConnectionsRepository } from './connections.repository.js';
import { checkPropValues, configured, unchangedTimers } from './prop-values.js';
import { keptSecrets } from './secret-props.js';
import { connected, credentialsOf, namedConnections, withInline } from './source-connections.js';
import { NEW_MS, propsOf, slugOf, type SourceChange, sourceOf, type SourceRow, sourceState } from './source.entity.js';
import { SourcesRepository } from './sources.repository.js';

/** 143 bits, so that an endpoint cannot be guessed. */
const ENDPOINT_KEY_LENGTH = 24;

/** The component that a source will run. `fresh`: it was created from the request's code, and is stored if the rest of the request is valid. */
interface ChosenComponent extends Pick<DescribedComponent, 'id' | 'description'> {
  fresh?: NewComponent;
}

const hasHooks = ({ component }: SourceRow): boolean => component.inspected.description.hooks.length > 0;

/** The component that a source runs already. */
const currentOf = ({ component_id: id, component }: SourceRow): ChosenComponent => ({ id, description: component.inspected.description });

/** The requested state of a source, before it is validated against its component. */
interface Wanted extends Pick<SourceChange, 'name' | 'external_id' | 'active'> {
  /** Values as they were sent, masks included. */
  given: Record<string, unknown>;
  before?: SourceRow;
  /** Whether a prop that is not sent keeps its value and schedule. */
  keeps?: (prop: string) => boolean;
  slug?: string;
}

/** A change, with the decrypted values. */
type Decided = SourceChange & { values: Record<string, unknown> };

@Injectable()
export class SourcesService {
  constructor(
    private readonly sources: SourcesRepository,
    private readonly connections: ConnectionsRepository,
    private readonly components: ComponentsService,
    private readonly messages: Messages,
    private readonly config: CatalogConfig,
    private readonly box: SecretBox,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** @param deadline here and below: when the caller stops waiting, in ms since the epoch */
  async create({ id, owner_id, new_component_id, ...choice }: CreateSource, deadline = Infinity): Promise<Source> {
    requireComponent(choice);
    const most = this.config.maxSources || Infinity;
    await this.sources.requireFewer(owner_id, id, most);
    const component = await this.component(owner_id, new_component_id, choice, deadline);
    const given = choice.configured_props ?? {};
    const known = await this.connections.findAll(owner_id, namedConnections(given));
    const change = this.change(id, component, known, {
      // the default is the component's name, as a slug
      name: choice.name ?? slugOf(component.description.name),
      external_id: choice.external_id ?? null,
      given,
      active: true,
    });
    await this.sources.requireFree(owner_id, change.external_id, id);
    if (component.fresh) await this.components.keep(component.fresh);
    return this.toSource(await this.sources.create(owner_id, id, change, most));
  }

  /** Sets the component, the name and whether it is active; configured props and the external id are kept unless new ones are given. */
  async update({ id, owner_id, new_component_id, active, ...choice }: UpdateSource, deadline = Infinity): Promise<Source> {
    requireComponent(choice);
    const found = await this.found(owner_id, id);
    const component = await this.component(owner_id, new_component_id, choice, deadline, found);
    return this.save(found, component.fresh, async (before, session) => {
      const { name, external_id, configured_props } = choice;
      const known = await this.known(before, configured_props, session);
      return this.change(id, component, known, {
        name: name ?? slugOf(component.description.name),
        external_id: external_id === undefined ? before.external_id : external_id,
        given: configured_props ?? {},
        before,
        keeps: () => !configured_props,
        active: active ?? true,
      });
    });
  }

  /** Changes only the given fields. A patch without an effect changes nothing, so no hook runs for it. */
  async patch({ id, owner_id, new_component_id, ...patch }: PatchSource, deadline = Infinity): Promise<Source> {
    requireKeptComponent(patch);
    const found = await this.found(owner_id, id);
    const given = givesComponent(patch) ? await this.component(owner_id, new_component_id, patch, deadline, found) : undefined;
    // code that the source runs already is not a new component
    const component = given?.fresh?.code.hash === found.component.code_hash ? undefined : given;
    return this.save(found, component?.fresh, async (before, session) => {
      const known = await this.known(before, patch.configured_props, session);
      const change = this.patched(component ?? currentOf(before), known, patch, before);
      return this.isAsBefore(change, before) ? null : change;
    });
  }

  async get({ owner_id, id, without_endpoints }: GetSource): Promise<Source> {
    return this.toSource(await this.found(owner_id, id), this.endpointsUrl(without_endpoints));
  }

  /** Returns whether it was on, in this version. */
  async switchOff({ owner_id, id, version, reason }: SwitchOffSource): Promise<boolean> {
    const state = await this.sources.switchOff(owner_id, id, version);
    if (!state) return false;
    await this.announce(state, 'switched');
    this.log.warn({ source_id: id, account_id: owner_id, reason }, 'source.switched-off');
    return true;
  }

  async list(request: ListSources): Promise<LargePage<Source>> {
    const { owner_id, external_id, limit, after, before, may_cut, without_endpoints } = request;
    const page = { limit, after: idOfCursor('source', 'after', after), before: idOfCursor('source', 'before', before) };
    const part = { externalId: external_id || undefined, ...listedPart(request) };
    const { rows, total, cut } = await this.sources.list(owner_id, page, part);
    const endpointsUrl = this.endpointsUrl(without_endpoints);
    const sources = rows.map((row) => sourceOf(row, this.values(row), endpointsUrl, { inList: true }));
    // a gateway of an earlier version shows all members
    return { ...pageOf(sources, total, ({ id }) => cursorOf(id)), ...(may_cut && { cut }) };
  }

  async delete({ owner_id, id }: SourceReference): Promise<void> {
    const deleted = await this.sources.delete(owner_id, id);
    if (!deleted) throw new NotFound('source', id);
    await this.introduce(deleted.before);
    await this.announce(deleted.state, 'deleted');
  }

  /** Fields without precedence are ignored. The component that a source runs remains usable for it if it is removed from the registry. */
  private async component(
    ownerId: UserId,
    newId: ComponentId,
    choice: ComponentChoice,
    deadline: number,
    before?: SourceRow,
  ): Promise<ChosenComponent> {
    if (before && choice.component_id === before.component_id) return currentOf(before);
    if (isGiven(choice.component_id)) return this.components.usable(ownerId, choice.component_id);
    if (isGiven(choice.component_code) || isGiven(choice.component_url)) {
      const fresh = await this.components.prepare(ownerId, newId, choice, deadline);
      return { id: newId, description: fresh.code.description, fresh };
    }
    return this.components.registered(choice.key ?? '');
  }

  /** Runs before a component is fetched or inspected: a source of another account must cost nothing and reveal nothing. */
  private async found(ownerId: UserId, id: SourceId): Promise<SourceRow> {
    const row = await this.sources.find(ownerId, id);
    if (!row) throw new NotFound('source', id);
    return row;
  }

  private async save(
    found: SourceRow,
    fresh: NewComponent | undefined,
    decide: (before: SourceRow, session?: Session) => Promise<SourceChange | null>,
  ): Promise<Source> {
    const { owner_id, id } = found;
    // other requests may have changed it while the code was fetched and inspected
    const current = fresh ? await this.found(owner_id, id) : found;
    if (fresh) {
      // refused before the component is stored: otherwise that of a refused update would be the newest one of its key
      const probable = await decide(current);
      await this.sources.requireFree(owner_id, probable?.external_id, id);
      await this.components.keep(fresh);
    }
    let kind: EmitterChangeKind = 'switched';
    // with the locked row, whose connections no other request changes meanwhile
    const decideLocked = async (before: SourceRow, session?: Session) => {
      const change = await decide(before, session);
      // without a change, it may be a repeated request whose first one was cut off before it announced its change
      kind = change?.active === before.active ? 'configured' : 'switched';
      return change;
    };
    const row = await this.sources.update(owner_id, id, decideLocked, current.credentials !== null);
    if (!row) throw new NotFound('source', id);
    await this.introduce(current, row);
    return this.announced(row, kind);
  }

  /** The connections that the source uses, and those that the given values name. */
  private known(before: SourceRow, given: Record<string, unknown> | null | undefined, session?: Session): Promise<ConnectionRow[]> {
    return this.connections.findAll(before.owner_id, namedConnections(given ?? {}, this.values(before)), session);
  }

  private patched(
    component: ChosenComponent,
    known: ConnectionRow[],
    { name, external_id, configured_props = {}, active }: SourcePatch,
    before: SourceRow,
  ): Decided {
    const renamed = name !== undefined && name !== before.name;
    return this.change(before.id, component, known, {
      name: name === undefined ? before.name : (name ?? slugOf(component.description.name)),
      slug: renamed ? undefined : before.name_slug,
      external_id: external_id === undefined ? before.external_id : external_id,
      given: Object.fromEntries(Object.entries(configured_props).filter(([, value]) => value !== null)),
      before,
      // null removes it
      keeps: (prop) => !Object.hasOwn(configured_props, prop),
      active: active ?? before.active,
    });
  }

  /** Throws Invalid if the values are not valid for the component. */
  private change(
    sourceId: SourceId,
    { id, description: { configurable_props: props } }: ChosenComponent,
    known: ConnectionRow[],
    { slug, before, keeps = () => false, given: sent, ...wanted }: Wanted,
  ): Decided {
    const [current, currentSchedules] = before ? [this.values(before), before.schedules] : [{}, {}];
    const unchanged = new Set(unchangedTimers(props, sent, currentSchedules));
    const isKept = (prop: string) => unchanged.has(prop) || keeps(prop);
    const given = pick(sent, (prop) => !unchanged.has(prop));
    const keptValues = pick(current, isKept);
    const secrets = keptSecrets(props, { given, kept: keptValues }, before && { props: propsOf(before), values: current });
    const stored = before ? this.stored(before) : {};
    const { schedules, hasEndpoint, problems } = checkPropValues(props, secrets.values, {
      minSeconds: this.config.minIntervalSeconds,
      kept: pick(currentSchedules, isKept),
      // the credentials of connections, which may have changed since, have a limit each
      counted: { ...secrets.values, ...Object.fromEntries(Object.keys(keptValues).map((name) => [name, stored[name]])), ...given },
    });
    const { values, uses, inline, ...connections } = connected(props, configured(props, secrets.values), {
      sourceId,
      before: stored,
      known,
      box: this.box,
    });
    const first = [...secrets.problems, ...connections.problems];
    const named = new Set(first.map(({ field }) => field));
    const all = [...first, ...problems.filter(({ field }) => !named.has(field))];
    if (all.length > 0) throw new Invalid(all);
    return {
      ...wanted,
      component_id: id,
      slug: slug ?? slugOf(wanted.name),
      values: withInline(props, values, { ...before?.credentials, ...credentialsOf(inline) }, this.box),
      uses,
      inline,
      configured_props: this.box.seal(JSON.stringify(values), propsContext(sourceId)),
      schedules,
      endpoint_key: hasEndpoint ? randomText(ENDPOINT_KEY_LENGTH) : null,
    };
  }

  private async announced(row: SourceRow, kind: EmitterChangeKind): Promise<Source> {
    await this.announce(sourceState(row), kind);
    return this.toSource(row);
  }

  /** The runtime may not know a new source. It has to apply this state before the next one, so that the right hooks run. */
  private async introduce(row: SourceRow, next: SourceRow = row): Promise<void> {
    if (Date.now() - row.created_at.getTime() < NEW_MS && (hasHooks(row) || hasHooks(next)))
      await this.announce(sourceState(row), 'configured');
  }

  /** Before the request returns, the services concerned apply the change to runs, endpoints, matching and stored events. */
  private async announce(state: EmitterState, kind: EmitterChangeKind): Promise<void> {
    await announceChanges(this.messages, [state], kind);
  }

  private isAsBefore(change: Decided, before: SourceRow): boolean {
    return (
      isDeepStrictEqual(change.values, this.values(before)) &&
      (['component_id', 'name', 'external_id', 'active', 'schedules'] as const).every((field) =>
        isDeepStrictEqual(change[field], before[field]),
      )
    );
  }

  /** The configured props, with the credentials of inline connections. */
  private values(row: SourceRow): Record<string, unknown> {
    return withInline(propsOf(row), this.stored(row), row.credentials, this.box);
  }

  private stored(row: SourceRow): Record<string, unknown> {
    const { id, configured_props } = row;
    const values =
      typeof configured_props === 'string'
        ? (JSON.parse(this.box.open(configured_props, propsContext(id))) as Record<string, unknown>)
        : configured_props;
    // earlier versions stored endpoints that clients had sent back
    return configured(propsOf(row), values);
  }

  private endpointsUrl(hidden = false): string | null {
    return hidden ? null : this.config.endpointsUrl;
  }

  private toSource(row: SourceRow, endpointsUrl = this.endpointsUrl()): Source {
    return sourceOf(row, this.values(row), endpointsUrl);
  }
}

/** null counts as absent. */
const isGiven = (text: string | null | undefined): text is string => text !== undefined && text !== null;

const pick = <T>(values: Record<string, T>, isPicked: (name: string) => boolean): Record<string, T> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => isPicked(name)));
