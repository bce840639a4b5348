import { Module } from '@nestjs/common';
import { LogReader } from '#messaging';
import { OutboxRelay } from '#outbox';
import { RecordedEvents } from '../history/recorded-events.js';
import { RoutingConfig } from '../routing.config.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { Attempts } from './attempts.js';
import { Backlogs } from './backlogs.js';
import { DeliveredLog } from './delivered-log.js';
import { DeliveredRepository } from './delivered.repository.js';
import { DeliveriesController } from './deliveries.controller.js';
import { DeliveriesRepository } from './deliveries.repository.js';
import { DeliveriesService } from './deliveries.service.js';
import { DeliveryListRepository } from './delivery-list.repository.js';
import { DeliveryStore } from './delivery-store.js';
import { Dispatcher } from './dispatcher.js';
import { Drainer } from './drainer.js';
import { HttpPoster } from './http-poster.js';
import { Lines } from './line.js';
import { Notices } from './notices.js';
import { NoticesRepository } from './notices.repository.js';
import { OwnerNotices } from './owner-notices.js';
import { Poster } from './poster.js';
import { RANDOM } from './random.js';
import { Sweeper } from './sweeper.js';
import { SweeperRepository } from './sweeper.repository.js';
import { Targets } from './targets.js';
import { WebhookTest } from './webhook-test.js';

@Module({
  imports: [WebhooksModule],
  controllers: [DeliveriesController],
  providers: [
    { provide: DeliveryStore, useClass: DeliveriesRepository },
    { provide: Notices, useClass: OwnerNotices },
    {
      provide: Poster,
      inject: [RoutingConfig],
      useFactory: ({ guard, attemptTimeoutMs, connectTimeoutMs }: RoutingConfig) =>
        new HttpPoster({ guard, timeoutMs: attemptTimeoutMs, connectTimeoutMs }),
    },
    { provide: RANDOM, useValue: Math.random },
    { provide: Lines, useFactory: () => new Lines() },
    Targets,
    Attempts,
    Dispatcher,
    Drainer,
    Backlogs,
    DeliveredLog,
    DeliveredRepository,
    DeliveriesService,
    DeliveryListRepository,
    NoticesRepository,
    Sweeper,
    SweeperRepository,
    WebhookTest,
    LogReader,
    RecordedEvents,
    OutboxRelay,
  ],
  exports: [Dispatcher, LogReader, RecordedEvents, DeliveryListRepository, DeliveredLog],
})
export class DeliveriesModule {}
