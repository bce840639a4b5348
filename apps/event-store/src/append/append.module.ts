import { Module } from '@nestjs/common';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendController } from './append.controller.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import { StoreProgress } from './store-progress.js';
import { StreamCounter, TrimCounter } from './stream-counters.js';

@Module({
  controllers: [AppendController],
  providers: [
    AppendRepository,
    AppendService,
    StoreProgress,
    { provide: TrimCounter, useFactory: () => new TrimCounter() },
    { provide: StreamCounter, useFactory: () => new StreamCounter() },
    { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() },
  ],
  exports: [AppendRepository, EventStoreConfig, StoreProgress],
})
export class AppendModule {}
