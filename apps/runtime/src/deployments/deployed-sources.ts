import { Injectable } from '@nestjs/common';
import { EmitterDirectory } from '#emitters';
import type { DeploymentRow } from './deployment.entity.js';
import { DeploymentsRepository } from './deployments.repository.js';

/** Sources as they are deployed. One whose fact has not arrived yet is looked up in the catalog. */
@Injectable()
export class DeployedSources {
  constructor(
    private readonly deployments: DeploymentsRepository,
    private readonly directory: EmitterDirectory,
  ) {}

  /** Undefined if there is no such source. Throws TimedOut or Unavailable if it is unknown and the catalog does not respond. */
  async find(sourceId: string): Promise<DeploymentRow | undefined> {
    const known = await this.deployments.find(sourceId);
    if (known) return known;
    await this.directory.find([sourceId]);
    return this.deployments.find(sourceId);
  }
}
