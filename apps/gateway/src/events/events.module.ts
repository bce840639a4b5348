import { Module } from '@nestjs/common';
import { EventsService } from './events.service.js';

/** Reads stored events, for their routes and for live streams. */
@Module({ providers: [EventsService], exports: [EventsService] })
export class EventsModule {}
