import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { WebhookRow } from './webhook.entity.js';
import { WebhooksController } from './webhooks.controller.js';
import { WebhooksRepository } from './webhooks.repository.js';
import { WebhooksService } from './webhooks.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([WebhookRow])],
  controllers: [WebhooksController],
  providers: [WebhooksRepository, WebhooksService],
  exports: [WebhooksRepository],
})
export class WebhooksModule {}
