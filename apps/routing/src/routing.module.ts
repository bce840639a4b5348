import { Global, Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { EmittersModule } from '#emitters';
import { ProtectedBrokersModule } from '#service';
import { StatsModule } from '#stats';
import { schema } from './database/schema.js';
import { HistoryModule } from './history/history.module.js';
import { ReplaysModule } from './replays/replays.module.js';
import { RoutesModule } from './routes/routes.module.js';
import { RoutingConfig } from './routing.config.js';
import { EmitterChanges } from './subscriptions/emitter-changes.js';
import { SubscriptionsModule } from './subscriptions/subscriptions.module.js';
import { RoutingWebhookDependents } from './routing-webhook-dependents.js';
import { WebhookDependents } from './webhooks/webhooks.repository.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

@Global()
@Module({
  providers: [
    { provide: RoutingConfig, useFactory: () => RoutingConfig.read() },
    { provide: WebhookDependents, useClass: RoutingWebhookDependents },
  ],
  exports: [RoutingConfig, WebhookDependents],
})
class SharedModule {}

/** Subscriptions, matching and deliveries. */
@Module({
  imports: [
    SharedModule,
    ProtectedBrokersModule,
    DatabaseModule.forApp(schema, { max: 20 }),
    EmittersModule.forApp({ useClass: EmitterChanges, imports: [SubscriptionsModule] }),
    StatsModule,
    WebhooksModule,
    SubscriptionsModule,
    RoutesModule,
    HistoryModule,
    ReplaysModule,
  ],
})
export class RoutingModule {}
