import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type DeliveryAttempt,
  DeliveryReference,
  ListDeliveries,
  listDeliveries,
  type Page,
  RecoverDeliveries,
  recoverDeliveries,
  retryDelivery,
  testWebhook,
  type WebhookDelivery,
  WebhookReference,
} from '#contracts';
import { Handles } from '#messaging';
import { DeliveriesService } from './history/deliveries.service.js';
import { WebhookTest } from './direct/webhook-test.js';

@Controller()
export class DeliveriesController {
  constructor(
    private readonly deliveries: DeliveriesService,
    private readonly webhookTest: WebhookTest,
  ) {}

  @Handles(listDeliveries)
  list(@Payload() request: ListDeliveries): Promise<Page<WebhookDelivery>> {
    return this.deliveries.list(request);
  }

  @Handles(retryDelivery)
  retry(@Payload() command: DeliveryReference): Promise<WebhookDelivery> {
    return this.deliveries.retry(command);
  }

  @Handles(recoverDeliveries)
  recover(@Payload() command: RecoverDeliveries): Promise<{ count: number }> {
    return this.deliveries.recover(command);
  }

  @Handles(testWebhook)
  test(@Payload() reference: WebhookReference): Promise<DeliveryAttempt> {
    return this.webhookTest.run(reference);
  }
}
