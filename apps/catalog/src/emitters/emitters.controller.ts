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
import { SourcesRepository } from '../sources/sources.repository.js';
import { WorkflowsProgress } from '../workflows/workflows-progress.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';

/** Looks up emitters for services whose fact about them has not arrived yet. */
@Controller()
export class EmittersController {
  constructor(
    private readonly sources: SourcesRepository,
    private readonly workflows: WorkflowsRepository,
    private readonly progress: WorkflowsProgress,
  ) {}

  @Handles(findEmitters)
  async find(
    @Payload() { ids, without_deployments, up_to_date, with_removed }: FindEmitters,
    @Ctx() record: LogRecord,
  ): Promise<EmitterState[]> {
    const sources = without_deployments ? this.sources.bareStates(ids) : this.sources.states(ids);
    const found = (await Promise.all([sources, this.workflows.states(ids, { withRemoved: with_removed })])).flat();
    const existing = new Set(found.map(({ emitter_id }) => emitter_id));
    const missing = up_to_date ? ids.filter((id) => isId('workflow', id) && !existing.has(id)) : [];
    if (missing.length === 0) return found;
    await this.progress.reachEnd(deadlineOf(record));
    return [...found, ...(await this.workflows.states(missing))];
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
