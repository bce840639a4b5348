import { Module } from '@nestjs/common';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendModule } from '../append/append.module.js';
import { SweepService } from './sweep.service.js';

@Module({
  imports: [AppendModule],
  providers: [SweepService, { provide: EventStoreConfig, useFactory: () => EventStoreConfig.read() }],
  exports: [AppendModule],
})
export class RetentionModule {}
