import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { EventStoreConfig } from '../event-store.config.js';
import { WithdrawnEmitRow } from '../withdrawn/withdrawn-emit.entity.js';
import { RetentionRepository } from './retention.repository.js';
import { SweepService } from './sweep.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([WithdrawnEmitRow])],
  providers: [RetentionRepository, SweepService, { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() }],
  exports: [RetentionRepository],
})
export class RetentionModule {}
