import { Module } from '@nestjs/common';
import { LiveModule } from '../live/live.module.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';
import { PublishingController } from './publishing.controller.js';
import { PublishingService } from './publishing.service.js';

@Module({
  imports: [LiveModule],
  controllers: [PublishingController],
  providers: [EmitterOwners, EventLog, PublishingService],
  exports: [EmitterOwners, EventLog],
})
export class PublishingModule {}
