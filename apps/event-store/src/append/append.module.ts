import { Module } from '@nestjs/common';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendController } from './append.controller.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import { EventIntake } from './event-intake.js';
import { TrimCounter } from './trim-counter.js';

@Module({
  controllers: [AppendController],
  providers: [
    AppendRepository,
    AppendService,
    EventIntake,
    { provide: TrimCounter, useFactory: () => new TrimCounter() },
    { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() },
  ],
  exports: [AppendRepository],
})
export class AppendModule {}
