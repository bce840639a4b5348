import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  type EmitterState,
  FindEmitters,
  findEmitters,
  FindEndpoints,
  findEndpoints,
  FindNewEmitters,
  findNewEmitters,
  isId,
  type SourceId,
} from '#contracts';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { SourceStatesRepository } from '../sources/source-states.repository.js';
import { WorkflowsProgress } from '../workflows/workflows-progress.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';

/** Looks up emitters for services whose fact about them has not arrived yet, also those that have been deleted meanwhile: their events may be waiting. */
@Controller()
export class EmittersController {
  constructor(
    private readonly sources: SourceStatesRepository,
    private readonly workflows: WorkflowsRepository,
    private readonly progress: WorkflowsProgress,
  ) {}

  @Handles(findEmitters)
  async find(@Payload() { ids, without_deployments, up_to_date }: FindEmitters, @Ctx() record: LogRecord): Promise<EmitterState[]> {
    const byKind = Map.groupBy(ids, (id) => isId('workflow', id));
    const sources = this.findSources(byKind.get(false) ?? [], without_deployments);
    const workflows = this.findWorkflows(byKind.get(true) ?? [], up_to_date ? deadlineOf(record) : undefined);
    return (await Promise.all([sources, workflows])).flat();
  }

  private async findSources(ids: string[], withoutDeployments = false): Promise<EmitterState[]> {
    if (ids.length === 0) return [];
    const found = await (withoutDeployments ? this.sources.bareStates(ids) : this.sources.states(ids));
    const missing = without(ids, found);
    return missing.length === 0 ? found : [...found, ...(await this.sources.deletedStates(missing))];
  }

  /** until: when to stop waiting for the registrations of missing ones, in ms; undefined: they need not be up to date. */
  private async findWorkflows(ids: string[], until: number | undefined): Promise<EmitterState[]> {
    if (ids.length === 0) return [];
    const found = await this.workflows.states(ids);
    const existing = found.filter(({ deleted }) => !deleted);
    const missing = without(ids, existing);
    if (until === undefined || missing.length === 0) return found;
    await this.progress.reachEnd(until);
    return [...existing, ...(await this.workflows.states(missing))];
  }

  @Handles(findNewEmitters)
  findNew(@Payload() { owner_id }: FindNewEmitters): Promise<SourceId[]> {
    return this.sources.newIds(owner_id);
  }

  @Handles(findEndpoints)
  findEndpoints(@Payload() { endpoint_keys }: FindEndpoints): Promise<EmitterState[]> {
    return this.sources.statesByEndpoint(endpoint_keys);
  }
}

/** Those of the ids that have no state. */
function without(ids: string[], states: EmitterState[]): string[] {
  const known = new Set<string>(states.map(({ emitter_id }) => emitter_id));
  return ids.filter((id) => !known.has(id));
}
