import { Module } from '@nestjs/common';
import { OutboxRelay } from '#outbox';
import { RoutingConfig } from '../routing.config.js';
import { WebhooksModule } from '../webhook-commands/webhook-commands.module.js';
import { Attempts } from './attempt/attempts.js';
import { Backlogs } from './backlog/backlogs.js';
import { DeliveredLog } from './history/delivered-log.js';
import { DeliveredRepository } from './history/delivered.repository.js';
import { DeliveriesController } from './deliveries.controller.js';
import { DeliveriesRepository } from './store/parked-deliveries.repository.js';
import { DeliveriesService } from './history/deliveries.service.js';
import { DeliveryListRepository } from './store/delivery-list.repository.js';
import { DeliveryStore } from './store/delivery-store.js';
import { Dispatcher } from './direct/dispatcher.js';
import { Drainer } from './backlog/drainer.js';
import { HttpPoster, Poster } from './attempt/http-poster.js';
import { ReceiverStates } from './receivers/receiver-states.js';
import { Notices, OwnerNotices } from './alerts/alerts.js';
import { NoticesRepository } from './alerts/notices.repository.js';
import { RANDOM } from './attempt/retry-schedule.js';
import { Sweeper } from './backlog/sweeper.js';
import { SweeperRepository } from './store/sweeper.repository.js';
import { Targets } from './receivers/targets.js';
import { WebhookTest } from './direct/webhook-test.js';

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
    { provide: ReceiverStates, useFactory: () => new ReceiverStates() },
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
    OutboxRelay,
  ],
  exports: [Dispatcher],
})
export class DeliveriesModule {}
