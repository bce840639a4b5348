import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import {
  createWebhook,
  getWebhookSecret,
  listWebhooks,
  newId,
  type Page,
  PageRequest,
  type UserId,
  type Webhook,
  WebhookFields,
  type WebhookId,
  type WebhookSecret,
} from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../auth/account.decorator.js';
import { IdPipe } from '../http/id.pipe.js';
import { Parameters } from '../http/parameters.decorator.js';

@Controller('v1')
export class WebhooksController {
  constructor(private readonly messages: Messages) {}

  @Post('webhooks')
  @HttpCode(200)
  async create(@OwnerId() owner_id: UserId, @Parameters() { url, name, description }: WebhookFields): Promise<{ data: Webhook }> {
    const command = { id: newId('webhook'), owner_id, url, name, description };
    return { data: await this.messages.request(createWebhook, command, { key: owner_id }) };
  }

  @Get('users/me/webhooks')
  list(@OwnerId() owner_id: UserId, @Query() page: PageRequest): Promise<Page<Webhook>> {
    return this.messages.request(listWebhooks, { ...page, owner_id }, { key: owner_id });
  }

  @Get('webhooks/:id/secret')
  async secret(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('webhook')) id: WebhookId): Promise<{ data: WebhookSecret }> {
    return { data: await this.messages.request(getWebhookSecret, { owner_id, id }, { key: owner_id }) };
  }
}
