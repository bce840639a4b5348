import { Module } from '@nestjs/common';
import { LogReader } from '#messaging';
import { OutboxRelay } from '#outbox';
import { RecordedEvents } from './history/recorded-events.js';
import { RoutingConfig } from '../routing.config.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import { Attempts } from './attempt/attempts.js';
import { Backlogs } from './backlog/backlogs.js';
import { DeliveredRepository } from './history/delivered.repository.js';
import { DeliveredLog } from './history/delivered-log.js';
import { DeliveriesController } from './deliveries.controller.js';
import { DeliveriesService } from './history/deliveries.service.js';
import { DeliveryStore } from './store/delivery-store.js';
import { NextDeliveriesRepository } from './store/next-deliveries.repository.js';
import { ParkedDeliveriesRepository } from './store/parked-deliveries.repository.js';
import { PostgresDeliveryStore } from './store/postgres-delivery-store.js';
import { Dispatcher } from './direct/dispatcher.js';
import { Drainer } from './backlog/drainer.js';
import { HttpPoster, Poster } from './attempt/http-poster.js';
import { ReceiverStates } from './receivers/receiver-states.js';
import { Notices, OwnerNotices } from './notices.js';
import { RANDOM } from './attempt/retry-schedule.js';
import { RunningClock } from './attempt/running-clock.js';
import { Sweeper } from './backlog/sweeper.js';
import { Targets } from './receivers/targets.js';
import { WebhookTest } from './direct/webhook-test.js';

@Module({
  imports: [WebhooksModule],
  controllers: [DeliveriesController],
  providers: [
    { provide: DeliveryStore, useClass: PostgresDeliveryStore },
    { provide: Notices, useClass: OwnerNotices },
    {
      provide: Poster,
      inject: [RoutingConfig, RunningClock],
      useFactory: ({ guard, attemptTimeoutMs, connectTimeoutMs }: RoutingConfig, clock: RunningClock) =>
        new HttpPoster({ guard, clock, timeoutMs: attemptTimeoutMs, connectTimeoutMs }),
    },
    { provide: RANDOM, useValue: Math.random },
    { provide: ReceiverStates, useFactory: () => new ReceiverStates() },
    RunningClock,
    Targets,
    Attempts,
    Dispatcher,
    Drainer,
    Backlogs,
    DeliveredLog,
    DeliveredRepository,
    DeliveriesService,
    ParkedDeliveriesRepository,
    NextDeliveriesRepository,
    Sweeper,
    WebhookTest,
    LogReader,
    RecordedEvents,
    OutboxRelay,
  ],
  exports: [Dispatcher, ReceiverStates, LogReader, RecordedEvents, DeliveredLog, DeliveredRepository, ParkedDeliveriesRepository],
})
export class DeliveriesModule {
  constructor(webhooks: WebhooksRepository, targets: Targets) {
    webhooks.onChange((id) => targets.outdate(id));
  }
}
