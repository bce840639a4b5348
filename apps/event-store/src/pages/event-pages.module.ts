import { Module } from '@nestjs/common';
import { EventPagesController } from './event-pages.controller.js';
import { EventPagesRepository } from './event-pages.repository.js';
import { EventPagesService } from './event-pages.service.js';

@Module({ controllers: [EventPagesController], providers: [EventPagesService, EventPagesRepository] })
export class EventPagesModule {}
