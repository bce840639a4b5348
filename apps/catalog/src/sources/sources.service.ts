import { Inject, Injectable } from '@nestjs/common';
import {
  type ComponentChoice,
  type ComponentDescription,
  type ComponentId,
  type CreateSource,
  cursorOf,
  emitterChanged,
  type EmitterState,
  idOfCursor,
  Invalid,
  type ListSources,
  type NewSource,
  NotFound,
  type Page,
  pageOf,
  randomText,
  type Source,
  type SourceReference,
  type SwitchOffSource,
  type UpdateSource,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { LOG, type Log } from '#observability';
import { CatalogConfig } from '../catalog.config.js';
import type { ComponentRow, NewComponent } from '../components/component.entity.js';
import { ComponentsService } from '../components/components.service.js';
import { checkPropValues } from './prop-values.js';
import { slugOf } from './slug.js';
import { type SourceChange, type SourceRow, sourceOf, sourceState } from './source.entity.js';
import { SourcesRepository } from './sources.repository.js';

/** 143 bits: nobody guesses an endpoint. */
const ENDPOINT_KEY_LENGTH = 24;

/** The component that a source is to run. `fresh`: it came with the source, and is kept when all else is right. */
interface ChosenComponent {
  id: ComponentId;
  description: ComponentDescription;
  fresh?: NewComponent;
}

const chosen = ({ id, inspected }: ComponentRow): ChosenComponent => ({ id, description: inspected.description });

@Injectable()
export class SourcesService {
  constructor(
    private readonly sources: SourcesRepository,
    private readonly components: ComponentsService,
    private readonly messages: Messages,
    private readonly config: CatalogConfig,
    @Inject(LOG) private readonly log: Log,
  ) {}

  async create({ id, owner_id, new_component_id, ...choice }: CreateSource): Promise<Source> {
    const { component_id, component_code, component_url, key } = choice;
    requireOneOf({ component_id, component_code, component_url, key });
    const component = await this.component(owner_id, new_component_id, choice);
    const change = this.change(component, choice, { active: true });
    if (component.fresh) await this.components.keep(component.fresh);
    return this.announced(await this.sources.create(owner_id, id, change));
  }

  /** Sets the component, the name and whether it's active; configured props stay unless new ones are given. */
  async update({ id, owner_id, new_component_id, active, ...choice }: UpdateSource): Promise<Source> {
    const { component_id, component_code, component_url } = choice;
    requireOneOf({ component_id, component_code, component_url });
    // before the component is fetched or inspected: a source of another account must cost nothing and reveal nothing
    const found = await this.sources.find(owner_id, id);
    if (!found) throw new NotFound('source', id);
    const component = await this.component(owner_id, new_component_id, choice);
    // what doesn't fit is refused before anything is written: a component of a refused update would be the newest of its key
    this.change(component, choice, { active: true, before: found });
    if (component.fresh) await this.components.keep(component.fresh);
    const row = await this.sources.update(owner_id, id, (before) => this.change(component, choice, { active: active ?? true, before }));
    if (!row) throw new NotFound('source', id);
    return this.announced(row);
  }

  async get({ owner_id, id }: SourceReference): Promise<Source> {
    const row = await this.sources.find(owner_id, id);
    if (!row) throw new NotFound('source', id);
    return this.answer(row);
  }

  async switchOff({ owner_id, id, reason }: SwitchOffSource): Promise<void> {
    const state = await this.sources.switchOff(owner_id, id);
    if (state) await this.announce(state);
    this.log.warn({ source_id: id, owner_id, reason }, 'source.switched-off');
  }

  async list({ owner_id, limit, after, before }: ListSources): Promise<Page<Source>> {
    const page = { limit, after: idOfCursor('source', 'after', after), before: idOfCursor('source', 'before', before) };
    const { rows, total } = await this.sources.list(owner_id, page);
    const sources = rows.map((row) => sourceOf(row, this.config.endpointsUrl, { inList: true }));
    return pageOf(sources, total, ({ id }) => cursorOf(id));
  }

  async delete({ owner_id, id }: SourceReference): Promise<void> {
    const state = await this.sources.delete(owner_id, id);
    if (!state) throw new NotFound('source', id);
    await this.announce(state);
  }

  /** Fields without precedence are ignored. */
  private async component(ownerId: UserId, newId: ComponentId, choice: NewSource): Promise<ChosenComponent> {
    if (isGiven(choice.component_id)) return chosen(await this.components.usable(ownerId, choice.component_id));
    if (isGiven(choice.component_code) || isGiven(choice.component_url)) {
      const fresh = await this.components.prepare(ownerId, newId, choice);
      return { id: newId, description: fresh.code.description, fresh };
    }
    return chosen(await this.components.registered(choice.key ?? ''));
  }

  private change(
    { id, description }: ChosenComponent,
    choice: ComponentChoice,
    { active, before }: { active: boolean; before?: SourceRow },
  ): SourceChange {
    const configuredProps = choice.configured_props ?? before?.configured_props ?? {};
    const { schedules, hasEndpoint, problems } = checkPropValues(description.configurable_props, configuredProps, {
      minSeconds: this.config.minIntervalSeconds,
      kept: before?.schedules,
    });
    if (problems.length > 0) throw new Invalid(problems);
    // without a name it's the component's, as a slug
    const name = choice.name ?? slugOf(description.name);
    return {
      component_id: id,
      name,
      slug: slugOf(name),
      configured_props: configuredProps,
      schedules,
      active,
      endpoint_key: hasEndpoint ? randomText(ENDPOINT_KEY_LENGTH) : null,
    };
  }

  private async announced(row: SourceRow): Promise<Source> {
    await this.announce(sourceState(row));
    return this.answer(row);
  }

  /** Before the request returns, every service applies the change to runs, matching and endpoints. */
  private announce(state: EmitterState): Promise<void> {
    return this.messages.announce(emitterChanged, state, state.emitter_id);
  }

  private answer(row: SourceRow): Source {
    return sourceOf(row, this.config.endpointsUrl);
  }
}

/** null is as if absent. */
const isGiven = (text: string | null | undefined): text is string => text !== undefined && text !== null;

/** Said before anything is looked up: what is malformed is 400, whatever there is or isn't. */
function requireOneOf(choice: Record<string, string | undefined>): void {
  if (Object.values(choice).some(isGiven)) return;
  const names = Object.keys(choice);
  throw new Invalid([{ field: 'component_id', message: `one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)} is required` }]);
}
