import { Module } from '@nestjs/common';
import { DeploymentsRepository } from './deployments.repository.js';

/** Apart, because the directory's listener needs it as well as the runs. */
@Module({ providers: [DeploymentsRepository], exports: [DeploymentsRepository] })
export class DeploymentsModule {}
