import { Module } from '@nestjs/common';
import { DeletionsController } from './deletions.controller.js';
import { DeletionsService } from './deletions.service.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';
import { PublishingController } from './publishing.controller.js';
import { PublishingService } from './publishing.service.js';

@Module({
  controllers: [PublishingController, DeletionsController],
  providers: [EmitterOwners, EventLog, PublishingService, DeletionsService],
})
export class PublishingModule {}
