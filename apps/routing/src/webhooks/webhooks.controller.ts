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
  RotateWebhookSecret,
  rotateWebhookSecret,
  UpdateWebhook,
  updateWebhook,
  type Webhook,
  WebhookReference,
  type WebhookSecret,
} from '#contracts';
import { Answers } from '#messaging';
import { WebhooksService } from './webhooks.service.js';

@Controller()
export class WebhooksController {
  constructor(private readonly webhooks: WebhooksService) {}

  @Answers(createWebhook)
  create(@Payload() command: CreateWebhook): Promise<Webhook> {
    return this.webhooks.create(command);
  }

  @Answers(getWebhook)
  get(@Payload() reference: WebhookReference): Promise<Webhook> {
    return this.webhooks.get(reference);
  }

  @Answers(listWebhooks)
  list(@Payload() request: ListWebhooks): Promise<Page<Webhook>> {
    return this.webhooks.list(request);
  }

  @Answers(updateWebhook)
  update(@Payload() command: UpdateWebhook): Promise<Webhook> {
    return this.webhooks.update(command);
  }

  @Answers(deleteWebhook)
  delete(@Payload() reference: WebhookReference): Promise<void> {
    return this.webhooks.delete(reference);
  }

  @Answers(getWebhookSecret)
  getSecret(@Payload() reference: WebhookReference): Promise<WebhookSecret> {
    return this.webhooks.getSecret(reference);
  }

  @Answers(rotateWebhookSecret)
  rotateSecret(@Payload() command: RotateWebhookSecret): Promise<WebhookSecret> {
    return this.webhooks.rotateSecret(command);
  }
}
