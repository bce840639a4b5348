import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  CreateWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  getWebhookSecret,
  ListWebhooks,
  listWebhooks,
  type Page,
  type RotatedWebhookSecret,
  RotateWebhookSecret,
  rotateWebhookSecret,
  UpdateWebhook,
  updateWebhook,
  type Webhook,
  WebhookReference,
  type WebhookSecret,
} from '#contracts';
import { Handles } from '#messaging';
import { WebhooksService } from './webhooks.service.js';

@Controller()
export class WebhooksController {
  constructor(private readonly webhooks: WebhooksService) {}

  @Handles(createWebhook)
  create(@Payload() command: CreateWebhook): Promise<Webhook> {
    return this.webhooks.create(command);
  }

  @Handles(getWebhook)
  get(@Payload() reference: WebhookReference): Promise<Webhook> {
    return this.webhooks.get(reference);
  }

  @Handles(listWebhooks)
  list(@Payload() request: ListWebhooks): Promise<Page<Webhook>> {
    return this.webhooks.list(request);
  }

  @Handles(updateWebhook)
  update(@Payload() command: UpdateWebhook): Promise<Webhook> {
    return this.webhooks.update(command);
  }

  @Handles(deleteWebhook)
  delete(@Payload() reference: WebhookReference): Promise<void> {
    return this.webhooks.delete(reference);
  }

  @Handles(getWebhookSecret)
  getSecret(@Payload() reference: WebhookReference): Promise<WebhookSecret> {
    return this.webhooks.getSecret(reference);
  }

  @Handles(rotateWebhookSecret)
  rotateSecret(@Payload() command: RotateWebhookSecret): Promise<RotatedWebhookSecret> {
    return this.webhooks.rotateSecret(command);
  }
}
