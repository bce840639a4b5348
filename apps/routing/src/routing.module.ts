import { Global, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { TypeOrmModule } from '@nestjs/typeorm';
import { listFullInRuntime } from '#contracts';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { FairnessModule } from '#fairness';
import { ProtectedBrokersModule } from '#service';
import { StatsModule } from '#stats';
import { WaitingDataModule } from '#waiting-data';
import { schema } from './database/schema.js';
import { AccountsController } from './accounts/accounts.controller.js';
import { DeliveriesModule } from './deliveries/deliveries.module.js';
import { BacklogsRepository } from './deliveries/store/backlogs.repository.js';
import { EventListenersController } from './history/event-listeners.controller.js';
import { EventListenersRepository } from './history/event-listeners.repository.js';
import { StatsController } from './history/stats.controller.js';
import { Replayer } from './replays/replayer.js';
import { ReplayLog } from './replays/replay-log.js';
import { ReplaysController } from './replays/replays.controller.js';
import { ReplayRow, ReplaysRepository } from './replays/replays.repository.js';
import { MatchRepository } from './routes/match.repository.js';
import { EventTasks } from './routes/event-tasks.js';
import { MissedEvents } from './routes/missed-events.js';
import { PostponedEvents } from './routes/postponed-events.js';
import { PostponedEventsRepository } from './routes/postponed-events.repository.js';
import { Router } from './routes/router.js';
import { UnknownEvents } from './routes/unknown-events.js';
import { UnknownEventsRepository } from './routes/unknown-events.repository.js';
import { Withdrawals } from './routes/withdrawals.js';
import { RoutesController } from './routes/routes.controller.js';
import { RoutingConfig } from './routing.config.js';
import { EmitterChanges } from './subscriptions/emitter-changes.js';
import { SubscriptionsModule } from './subscriptions/subscriptions.module.js';
import { RoutingWebhookDependents } from './routing-webhook-dependents.js';
import { WAITING_DATA } from './waiting-data.js';
import { WebhookDependents } from './webhooks/webhooks.repository.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

@Global()
@Module({
  providers: [
    { provide: RoutingConfig, useFactory: () => RoutingConfig.read() },
    BacklogsRepository,
    { provide: WebhookDependents, useClass: RoutingWebhookDependents },
  ],
  exports: [RoutingConfig, BacklogsRepository, WebhookDependents],
})
class SharedModule {}

/** Subscriptions, matching and deliveries. */
@Module({
  imports: [
    SharedModule,
    ScheduleModule.forRoot(),
    ProtectedBrokersModule,
    DatabaseModule.forApp(schema, { max: 20 }),
    TypeOrmModule.forFeature([ReplayRow]),
    EmittersModule.forApp({ useClass: EmitterChanges, imports: [SubscriptionsModule] }),
    StatsModule,
    FairnessModule,
    WaitingDataModule.forApp([listFullInRuntime], WAITING_DATA),
    WebhooksModule,
    SubscriptionsModule,
    DeliveriesModule,
  ],
  controllers: [AccountsController, RoutesController, EventListenersController, StatsController, ReplaysController],
  providers: [
    MatchRepository,
    MissedEvents,
    EventTasks,
    PostponedEventsRepository,
    PostponedEvents,
    UnknownEventsRepository,
    UnknownEvents,
    Router,
    Withdrawals,
    EventListenersRepository,
    ReplaysRepository,
    ReplayLog,
    Replayer,
  ],
})
export class RoutingModule {}
