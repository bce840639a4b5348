import { Module } from '@nestjs/common';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import { EventIntake } from './event-intake.js';
import { EventLog } from './event-log.js';
import { TrimCounter } from './trim-counter.js';

@Module({
  providers: [
    AppendRepository,
    AppendService,
    EventIntake,
    EventLog,
    { provide: TrimCounter, useFactory: () => new TrimCounter() },
    { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() },
  ],
})
export class AppendModule {}
