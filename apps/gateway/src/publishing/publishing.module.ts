import { Module } from '@nestjs/common';
import { LiveModule } from '../live/live.module.js';
import { EmitterOwners, PublishingService } from './publishing.service.js';
import { EventLog } from './event-log.js';
import { PublishingController } from './publishing.controller.js';

@Module({ imports: [LiveModule], controllers: [PublishingController], providers: [EmitterOwners, EventLog, PublishingService] })
export class PublishingModule {}
