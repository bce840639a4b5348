import { Module } from '@nestjs/common';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { EventListenersController } from './event-listeners.controller.js';
import { EventListenersRepository } from './event-listeners.repository.js';
import { StatsController } from './stats.controller.js';

/** The outcome of past events. */
@Module({
  imports: [DeliveriesModule, WebhooksModule],
  controllers: [EventListenersController, StatsController],
  providers: [EventListenersRepository],
})
export class HistoryModule {}
