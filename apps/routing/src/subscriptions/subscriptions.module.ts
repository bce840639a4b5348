import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { AutoSubscriptionsController, SubscriptionsController } from './subscriptions.controller.js';
import { EndedEmittersRepository } from './ended-emitters.repository.js';
import { EndedSubscriptions } from './ended-subscriptions.js';
import { AutoSubscriptionRow, AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionRow, SubscriptionsRepository } from './subscriptions.repository.js';
import { SubscriptionsService } from './subscriptions.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([SubscriptionRow, AutoSubscriptionRow]), WebhooksModule],
  controllers: [SubscriptionsController, AutoSubscriptionsController],
  providers: [EndedEmittersRepository, SubscriptionsRepository, AutoSubscriptionsRepository, SubscriptionsService, EndedSubscriptions],
  exports: [SubscriptionsRepository, AutoSubscriptionsRepository],
})
export class SubscriptionsModule {}
