import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { EventsModule } from '../events/events.module.js';
import { LiveLogController } from './live-log.controller.js';
import { LiveReader } from './live-reader.js';
import { LiveStreamsService } from './live-streams.service.js';
import { LiveConfig } from './live.config.js';
import { LiveController } from './live.controller.js';
import { StorePositions } from './store-positions.js';

@Module({
  imports: [AccountsModule, EventsModule],
  controllers: [LiveController, LiveLogController],
  providers: [{ provide: LiveConfig, useFactory: () => LiveConfig.read() }, LiveReader, LiveStreamsService, StorePositions],
})
export class LiveModule {}
