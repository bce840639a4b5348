import { Injectable } from '@nestjs/common';
import { EmitterDirectory } from '#emitters';
import type { DeploymentRow } from './deployment.entity.js';
import { DeploymentsRepository } from './deployments.repository.js';
import type { DeployedState } from './hook-runs.js';

/** Sources as they are deployed. One whose fact has not arrived yet is looked up in the catalog. */
@Injectable()
export class DeployedSources {
  constructor(
    private readonly deployments: DeploymentsRepository,
    private readonly directory: EmitterDirectory,
  ) {}

  /** Returns undefined if the source does not exist. Throws TimedOut or Unavailable if the catalog has to be asked and does not respond. */
  async find(sourceId: string): Promise<DeploymentRow | undefined> {
    const known = await this.deployments.find(sourceId);
    if (known) return known;
    await this.directory.find([sourceId]);
    return this.deployments.find(sourceId);
  }

  /** Completes a deployment of a version that did not know how many runs may be in progress. */
  completeOld({ source_id, deployment }: DeployedState, runsAtATime: number): Promise<void> {
    return this.deployments.setRunsAtATime(source_id, deployment.code_hash, runsAtATime);
  }
}
