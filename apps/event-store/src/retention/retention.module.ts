import { Module } from '@nestjs/common';
import { EventStoreConfig } from '../event-store.config.js';
import { RetentionRepository } from './retention.repository.js';
import { SweepService } from './sweep.service.js';

@Module({
  providers: [RetentionRepository, SweepService, { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() }],
  exports: [RetentionRepository],
})
export class RetentionModule {}
