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
  type UserId,
  type Webhook,
  WebhookReference,
  type WebhookSecret,
} from '#contracts';
import { QueuePerKey } from '#limits';
import { Handles } from '#messaging';
import { WebhooksService } from './webhooks.service.js';

/** Commands of one account that proceed at a time: each has a connection to the database, also while it waits for a lock of another one. */
const AT_ONCE = 8;

@Controller()
export class WebhooksController {
  private readonly turns = new QueuePerKey<UserId>(() => AT_ONCE);

  constructor(private readonly webhooks: WebhooksService) {}

  @Handles(createWebhook)
  create(@Payload() command: CreateWebhook): Promise<Webhook> {
    return this.inTurn(command.owner_id, () => this.webhooks.create(command));
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
    return this.inTurn(command.owner_id, () => this.webhooks.update(command));
  }

  @Handles(deleteWebhook)
  delete(@Payload() reference: WebhookReference): Promise<void> {
    return this.inTurn(reference.owner_id, () => this.webhooks.delete(reference));
  }

  @Handles(getWebhookSecret)
  getSecret(@Payload() reference: WebhookReference): Promise<WebhookSecret> {
    return this.webhooks.getSecret(reference);
  }

  @Handles(rotateWebhookSecret)
  rotateSecret(@Payload() command: RotateWebhookSecret): Promise<RotatedWebhookSecret> {
    return this.inTurn(command.owner_id, () => this.webhooks.rotateSecret(command));
  }

  private inTurn<Result>(ownerId: UserId, work: () => Promise<Result>): Promise<Result> {
    return this.turns.run(ownerId, 'too many changes of webhooks of this account are waiting', work);
  }
}
