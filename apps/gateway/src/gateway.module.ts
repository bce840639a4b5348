import { Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ScheduleModule } from '@nestjs/schedule';
import { listFullInRouting, listFullInRuntime } from '#contracts';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { FairnessModule } from '#fairness';
import { WaitingDataModule } from '#waiting-data';
import { AccountsModule } from './accounts/accounts.module.js';
import { ComponentsController } from './components/components.controller.js';
import { RegistryController } from './components/registry.controller.js';
import { ConnectionsController } from './connections/connections.controller.js';
import { schema } from './database/schema.js';
import { ErrorMailController } from './error-mail/error-mail.controller.js';
import { ErrorMail, ErrorNoticesRepository } from './error-mail/error-notices.repository.js';
import { MailSender } from './error-mail/mail-sender.js';
import { Mailer } from './error-mail/mailer.js';
import { EventListenersController } from './events/event-listeners.controller.js';
import { EventsController } from './events/events.controller.js';
import { EventsModule } from './events/events.module.js';
import { GatewayConfigModule } from './gateway-config.module.js';
import { FieldsInterceptor } from './http/fields.js';
import { LargePages } from './http/large-pages.js';
import { Housekeeping } from './housekeeping.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { LateResponses } from './idempotency/idempotent-posts.js';
import { LiveModule } from './live/live.module.js';
import { PublishingModule } from './publishing/publishing.module.js';
import { PropOptionsController } from './sources/prop-options.controller.js';
import { ReplaysController } from './replays/replays.controller.js';
import { RunsController } from './sources/runs.controller.js';
import { SourcesController } from './sources/sources.controller.js';
import { StatsController } from './stats/stats.controller.js';
import { SubscriptionsController } from './subscriptions/subscriptions.controller.js';
import { UsageController } from './usage/usage.controller.js';
import { UsageRepository } from './usage/usage.repository.js';
import { DeliveriesController } from './webhooks/deliveries.controller.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';

/** The REST API and the accounts. Everything else belongs to other services, which the gateway calls over Kafka. */
@Module({
  imports: [
    DatabaseModule.forApp(schema),
    TypeOrmModule.forFeature([ErrorMail]),
    EmittersModule.forApp(),
    ScheduleModule.forRoot(),
    FairnessModule,
    WaitingDataModule.forApp([listFullInRouting, listFullInRuntime]),
    GatewayConfigModule,
    AccountsModule,
    EventsModule,
    LiveModule,
    PublishingModule,
  ],
  controllers: [
    ComponentsController,
    RegistryController,
    ConnectionsController,
    SourcesController,
    RunsController,
    PropOptionsController,
    EventsController,
    EventListenersController,
    SubscriptionsController,
    WebhooksController,
    DeliveriesController,
    ReplaysController,
    StatsController,
    UsageController,
    ErrorMailController,
  ],
  providers: [
    // in this order, so that a late response, too, contains only the selected fields
    { provide: APP_INTERCEPTOR, useClass: LateResponses },
    { provide: APP_INTERCEPTOR, useClass: FieldsInterceptor },
    LargePages,
    IdempotencyRepository,
    UsageRepository,
    ErrorNoticesRepository,
    Mailer,
    MailSender,
    Housekeeping,
  ],
})
export class GatewayModule {}
