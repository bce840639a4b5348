import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type EmitterState,
  FindEmitters,
  findEmitters,
  FindEndpoints,
  findEndpoints,
  FindNewEmitters,
  findNewEmitters,
  type SourceId,
} from '#contracts';
import { Handles } from '#messaging';
import { SourcesRepository } from '../sources/sources.repository.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';

/** Looks up emitters for services whose fact about them has not arrived yet. */
@Controller()
export class EmittersController {
  constructor(
    private readonly sources: SourcesRepository,
    private readonly workflows: WorkflowsRepository,
  ) {}

  @Handles(findEmitters)
  async find(@Payload() { ids, without_deployments }: FindEmitters): Promise<EmitterState[]> {
    const sources = without_deployments ? this.sources.bareStates(ids) : this.sources.states(ids);
    return (await Promise.all([sources, this.workflows.states(ids)])).flat();
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
