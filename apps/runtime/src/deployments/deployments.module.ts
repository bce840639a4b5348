import { Module } from '@nestjs/common';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { DeploymentsRepository } from './deployments.repository.js';

/** Apart, because the directory's listener needs it as well as the runs. */
@Module({ providers: [DeploymentsRepository, QueuedRunsRepository], exports: [DeploymentsRepository, QueuedRunsRepository] })
export class DeploymentsModule {}
