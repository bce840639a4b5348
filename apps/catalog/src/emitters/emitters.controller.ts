import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { type EmitterState, FindEmitters, findEmitters, FindEndpoints, findEndpoints, FindNewEmitters, findNewEmitters } from '#contracts';
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
  async find(@Payload() { ids }: FindEmitters): Promise<EmitterState[]> {
    return (await Promise.all([this.sources.states(ids), this.workflows.states(ids)])).flat();
  }

  @Handles(findNewEmitters)
  findNew(@Payload() { owner_id }: FindNewEmitters): Promise<EmitterState[]> {
    return this.sources.newStates(owner_id);
  }

  @Handles(findEndpoints)
  findEndpoints(@Payload() { endpoint_keys }: FindEndpoints): Promise<EmitterState[]> {
    return this.sources.statesByEndpoint(endpoint_keys);
  }
}
