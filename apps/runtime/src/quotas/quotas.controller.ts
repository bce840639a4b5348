import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { admitRun, NotFound, RunRequest } from '#contracts';
import { Handles } from '#messaging';
import { DeployedSources } from '../deployments/deployed-sources.js';
import { overQuota } from '../run-events/error-reports.js';
import { Quotas } from './quotas.js';

/** Admits the runs that users request through the API. Requests to endpoints are admitted where they arrive. */
@Controller()
export class QuotasController {
  constructor(
    private readonly quotas: Quotas,
    private readonly sources: DeployedSources,
  ) {}

  @Handles(admitRun)
  async admit(@Payload() run: RunRequest): Promise<boolean> {
    if (await this.quotas.admit(run.owner_id, run.run_id)) return true;
    const source = await this.sources.find(run.source_id);
    if (!source) throw new NotFound('source', run.source_id);
    await this.quotas.notify(run.source_id, overQuota({ ...run, event: run.event ?? 'null' }, source.version, { isRefused: true }));
    return false;
  }
}
