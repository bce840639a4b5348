import { Module } from '@nestjs/common';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { EventListenersController } from './event-listeners.controller.js';
import { EventListenersRepository } from './event-listeners.repository.js';

/** What became of the events of the past. */
@Module({ imports: [DeliveriesModule], controllers: [EventListenersController], providers: [EventListenersRepository] })
export class HistoryModule {}
